"""Dockerfile.cli without an engine: its sources are there, it installs what the pages say, and nobody in it is root."""

from __future__ import annotations

import re
import shlex

import pytest
import tomllib

from chaos.cli.main import entry
from tests.documents.blocks import ROOT, blocks_of
from tests.kit.jobs.built_wheel import FILES, SOURCES

FILE = ROOT / "Dockerfile.cli"
PAGE = ROOT / "docs" / "guides" / "installing.md"


def instructions() -> list[tuple[str, list[str]]]:
    """The instructions of the file in their order, with their words."""
    lines = [line for line in FILE.read_text().splitlines() if line and not line.startswith("#")]
    return [(line.partition(" ")[0], shlex.split(line.partition(" ")[2], comments=True)) for line in lines]


def commands() -> list[str]:
    return [" ".join(words) for name, words in instructions() if name == "RUN"]


def test_each_source_is_in_the_repository_and_all_that_the_wheel_is_made_of_are_copied() -> None:
    copied = [words for name, words in instructions() if name == "COPY" and not words[0].startswith("--from")]
    sources = {source for words in copied for source in words[:-1]}
    assert all((ROOT / source).exists() for source in sources)
    assert {source.partition("/")[0] for source in sources} == {*SOURCES, *FILES}
    # A directory keeps its name, since pyproject.toml finds it by that.
    assert all(words[1] == f"/src/{words[0]}" for words in copied if (ROOT / words[0]).is_dir())


def test_its_extras_are_those_of_the_package_and_none_brings_mindspore() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = [set(found.split(",")) for found in re.findall(r"(?:/src|chaos-ascend)\[([\w,]+)\]", " ".join(commands()))]
    assert named[0] == named[1] and named[0] <= extras.keys()
    assert not any("mindspore" in requirement for extra in named[0] for requirement in extras[extra])


def test_the_second_stage_takes_packages_from_the_first_alone() -> None:
    second = [command for command in commands() if command.startswith("pip install")]
    assert second and all("--no-index" in command for command in second)


def test_the_command_runs_as_another_user_than_root_in_a_directory_of_that_user() -> None:
    found = dict(instructions())
    (user,) = (words[0] for name, words in instructions() if name == "USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)  # a number: a cluster that asks for runAsNonRoot sees no name
    last = [name for name, _ in instructions()]
    assert last.index("USER") > max(number for number, name in enumerate(last) if name in ("RUN", "COPY"))
    assert found["WORKDIR"] == ["/work"] and found["ENV"] == ["HOME=/work"]
    owner, group = user.split(":")
    assert f"install --directory --owner {owner} --group {group} /work" in commands()


def test_its_entry_point_is_the_command_below_a_first_process_that_collects_orphans() -> None:
    (line,) = (line for line in FILE.read_text().splitlines() if line.startswith("ENTRYPOINT"))
    assert line == 'ENTRYPOINT ["tini", "--", "chaos"]'
    assert any("install --yes --no-install-recommends tini" in command for command in commands())


def test_its_head_shows_the_commands_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = (block for block in blocks_of(PAGE) if "Dockerfile.cli" in block.text)
    head = [line.removeprefix("#").strip() for line in FILE.read_text().splitlines() if line.startswith("#   docker")]
    assert block.text.splitlines() == head
    for line in head[1:]:
        arguments = shlex.split(line.partition("chaos:cli ")[2])
        assert entry(["plan", arguments[-1]]) == 0, capsys.readouterr().err
