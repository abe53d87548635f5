"""Every text of the product can be shown in a locale that is not UTF-8, and costs no command its exit code."""

from __future__ import annotations

import ast
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console

import chaos as package
from chaos.cli import codes
from chaos.cli.encoding import PLAINER
from chaos.cli.main import COMMANDS, entry
from chaos.cli.options import echo_json
from chaos.cli.streams import guarded_streams
from chaos.report.result import CheckResult, RecoveryResult, Result
from chaos.report.terminal import print_result

OLD = ("gbk", "ascii")
SHOWN = ("cli", "report", "live", "trends", "soak", "attach", "checks", "plan", "run", "faults", "jobs", "platforms")
"""Rooms whose texts are shown."""

PAGES = ("report/html", "report/page", "report/index", "trends/page")
"""Parts that make pages for a browser: UTF-8 by their own word."""

PATTERNS = {"\N{REPLACEMENT CHARACTER}", "\N{LINEAR B SYLLABLE B008 A}"}
"""What is looked for in the texts of others, and never shown."""

Call = Callable[[Callable[[], int | None]], tuple[int | None, bytes, bytes]]


@pytest.fixture(params=OLD)
def call(request: pytest.FixtureRequest) -> Call:
    """Calls the command line with streams of an old locale, as Python makes them: what they cannot show raises."""

    def call(command: Callable[[], int | None]) -> tuple[int | None, bytes, bytes]:
        output, errors = io.BytesIO(), io.BytesIO()
        with pytest.MonkeyPatch.context() as patch:
            streams = [io.TextIOWrapper(stream, encoding=request.param, errors="strict") for stream in (output, errors)]
            patch.setattr("sys.stdout", streams[0])
            patch.setattr("sys.stderr", streams[1])
            code = command()
            for stream in streams:
                stream.flush()
            return code, output.getvalue(), errors.getvalue()

    return call


@pytest.mark.parametrize("arguments", [(name, "--help") for name in COMMANDS] + [("--help",)], ids=" ".join)
def test_every_help_is_shown(call: Call, arguments: tuple[str, ...]) -> None:
    code, output, errors = call(lambda: entry(arguments))
    assert (code, errors) == (codes.PASS, b"")
    assert output.startswith(b"Usage: chaos")


@pytest.mark.parametrize("command", ["list", "plan", "validate"])
def test_a_name_that_the_locale_lacks_is_shown_escaped(call: Call, place: Path, command: str) -> None:
    path = place / "scenarios" / "kill-rank.yaml"
    path.write_text(path.read_text("utf-8").replace("A rank dies.", "\N{SNOWMAN} ≤ 5 µs"), "utf-8")
    code, output, errors = call(lambda: entry([command, str(path)]))
    assert (code, errors) == (codes.PASS, b"")
    assert command != "list" or b"\\u2603 " in output


@pytest.mark.parametrize("name", [b"\xff-\xe6\x88\x91".decode("ascii", "surrogateescape")])
def test_a_byte_that_is_no_character_is_shown_as_the_byte(call: Call, place: Path, name: str) -> None:
    """Under the locale C Python knows a Chinese name by its bytes only."""
    code, _, errors = call(lambda: entry(["plan", name]))
    assert code == codes.USAGE
    assert rb"'\xff-\xe6\x88\x91'" in errors and b"udc" not in errors


def test_an_error_quotes_what_the_locale_lacks(call: Call, place: Path) -> None:
    code, _, errors = call(lambda: entry(["plan", "\N{SNOWMAN}"]))
    assert code == codes.USAGE
    assert b"\\u2603" in errors and b"Traceback" not in errors


RESULT = Result(
    scenario="s",
    cell="",
    seed=1,
    verdict="fail",
    plan={},
    faults=(),
    checks=(CheckResult("steps", "fail", "≤ 5 → …", "\N{SNOWMAN}", ("rank_0.log:3",)),),
    recovery=RecoveryResult("TTP", {"detect": 1.5}, None),
    baseline={},
    versions={},
    simulated=(),
    not_checked=(),
    agent={"hooks_us": 12.5, "digests_us": 3.0},
)


def test_a_result_is_shown_whole(call: Call) -> None:
    def show() -> None:
        with guarded_streams():
            print_result(RESULT, Console())

    shown = call(show)[1]
    assert b"5 -> ..." in shown or b"5 \xa1\xfa \xa1\xad" in shown  # GBK has an arrow and an ellipsis
    assert b"us a step" in shown
    assert b"\\u2603" in shown


def test_json_is_json_in_every_locale(call: Call) -> None:
    value = {"text": "µ \N{SNOWMAN} …", "bytes": "\udcff"}

    def show() -> None:
        with guarded_streams():
            echo_json(value)

    assert json.loads(call(show)[1].decode("ascii")) == value


def test_json_of_a_byte_that_is_no_character_is_json_in_utf_8(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ({"path": "/\udcce\udcd2", "text": "我"}, {"text": "我"}):
        output = io.BytesIO()
        monkeypatch.setattr("sys.stdout", io.TextIOWrapper(output, encoding="utf-8", errors="strict"))
        with guarded_streams():
            echo_json(value)
        sys.stdout.flush()
        assert json.loads(output.getvalue().decode("utf-8")) == value
        assert ("我".encode() in output.getvalue()) is ("path" not in value)


def strings_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_every_character_of_the_product_has_a_plain_form() -> None:
    folder = Path(package.__file__).parent
    pages = [folder / page for page in PAGES]
    paths = [path for room in SHOWN for path in (folder / room).rglob("*.py") if not set(pages) & set(path.parents)]
    texts = (text for path in paths for text in strings_of(path))
    used = {char for text in texts for char in text if not char.isascii() and char.isprintable()}
    assert {"µ", "…"} <= used <= PLAINER.keys() | PATTERNS
    assert all(plain.isascii() for plain in PLAINER.values())


@pytest.mark.parametrize("encoding", OLD)
def test_a_process_of_that_locale_ends_as_any_other(encoding: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    command = [sys.executable, "-m", "chaos", "plan", "\N{SNOWMAN}"]
    done = subprocess.run(command, capture_output=True, env=environment, timeout=120)
    assert (done.returncode, b"Traceback" in done.stderr) == (codes.USAGE, False)
