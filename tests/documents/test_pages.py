"""Every command and every scenario of README.md and docs/ runs, and links lead somewhere."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from chaos.base.registry import registry
from chaos.cli.main import COMMANDS, cli, entry
from chaos.run.prepare.prepare import known_names
from chaos.scenario.errors import ScenarioError
from chaos.scenario.load import load_scenario
from chaos.store.directory import create_run, make_private_directory
from tests.documents.blocks import PAGES, ROOT, TRANSLATIONS, Block, Perform, blocks_of, is_scenario
from tests.documents.instead import HOSTS, INSTEAD, instead_of
from tests.kit.shipped import SHIPPED
from tests.kit.spread import at_night

pytestmark = pytest.mark.processes

TEXTS = [*PAGES, *TRANSLATIONS, *(ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "changelog.d/README.md"))]
"""The pages, and what a contributor reads, whose blocks of commands nothing runs here."""

RUN = [page for page in PAGES if any(block.language == "sh" for block in blocks_of(page))]

AT_NIGHT = {
    "extending": "test_extension_is_healed.py installs a package every day, as the page does",
    "extending-undo": "test_extension_is_healed.py installs the package of the page every day",
    "nightly": "other tests of this file run its jobs",
    "own-code": "tests/unit/own runs checks and hooks every day",
    "python": "tests/unit/api and tests/unit/plugin/test_fixture.py call the same every day",
    "quick-start": "tutorial.md runs the same commands on the same job every day",
    "running-jobs": "the tests of chaos inject and chaos watch call the same commands every day",
}
"""Pages whose commands take long, and where they are shown every day."""


def ids(page: Path) -> str:
    return page.stem if page.parent.name != "changelog.d" else "changelog.d"


@pytest.mark.parametrize("page", [at_night(page) if page.stem in AT_NIGHT else page for page in RUN], ids=ids)
def test_the_commands_of_a_page_do_what_it_says(page: Path, perform: Perform) -> None:
    follow(page, perform, nightly=False)


@pytest.mark.nightly
@pytest.mark.parametrize("page", [page for page in RUN if any(block.nightly for block in blocks_of(page))], ids=ids)
def test_the_long_commands_of_a_page_do_what_it_says(page: Path, perform: Perform) -> None:
    follow(page, perform, nightly=True)


def follow(page: Path, perform: Perform, *, nightly: bool) -> None:
    """Do what a reader of the page does, block by block, and look for what the page shows."""
    printed: str | None = None
    for block in blocks_of(page):
        if block.shows:
            lines = block.text.splitlines() if printed is not None else []
            for line in lines:
                assert printed is not None and " ".join(line.split()) in printed, (
                    f"{block.where}: not printed: {line}\n{printed}"
                )
        elif block.file or block.language == "sh":
            skipped = block.unrun is not None or (block.nightly and not nightly)
            printed = None if skipped else " ".join(perform(block).split())


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_a_block_that_is_not_run_says_why_and_its_commands_can_be_parsed(page: Path, place: Path) -> None:
    for block in blocks_of(page):
        if block.language != "sh" or (block.unrun is None and not block.nightly):
            continue
        assert block.unrun is None or len(block.unrun) > 15, f"{block.where}: say why it cannot be run"
        for words in commands(block.text):
            parse(words, block.where, place)


UNRUN = [block for page in PAGES for block in blocks_of(page) if block.language == "sh" and block.unrun is not None]

PART_AT_NIGHT = {"conformance": "tests/conformance runs every day what its block runs"}
"""Pages of whose blocks a part takes long, and where it is shown every day."""


@pytest.mark.parametrize(
    "block",
    [at_night(block) if block.page.stem in PART_AT_NIGHT else block for block in UNRUN],
    ids=[block.where for block in UNRUN],
)
def test_what_of_a_block_can_be_done_here_is_done(block: Block, place: Path, perform: Perform) -> None:
    """As far as this machine can; of a block that cannot be run in any form the reason is printed."""
    text = instead_of(block)
    if text is None:
        pytest.skip(f"not run: {block.unrun}")
    for other in blocks_of(block.page):
        if is_scenario(other) and other.line < block.line:  # what the page shows before, under its own name
            (place / f"{yaml.safe_load(other.text)['name']}.yaml").write_text(other.text)
    perform(replace(block, about="", text=text))


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_no_block_is_overlooked(page: Path) -> None:
    fences = re.findall(r"^```", page.read_text(), re.M)
    assert len(fences) == 2 * len(blocks_of(page)), "a fence that is read as none, or is not closed"


def test_each_form_that_is_run_instead_is_that_of_a_block() -> None:
    assert len([block for block in UNRUN if instead_of(block)]) == len(INSTEAD)


SHOWN = [block for page in PAGES for block in blocks_of(page) if is_scenario(block) and block.file is None]


@pytest.mark.parametrize("block", SHOWN, ids=[block.where for block in SHOWN])
def test_a_scenario_that_a_page_shows_can_be_planned(
    block: Block,
    place: Path,
    home: Path,
    perform: Perform,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Those with a file are what the page's own commands are about."""
    (place / "shown.yaml").write_text(block.text)
    command = ["plan", "shown.yaml"]
    if yaml.safe_load(block.text)["cluster"].get("nodes", 1) > 1:  # mindspore has several hosts there only
        perform(Block(block.page, block.line, "sh", "", HOSTS))
        command += ["--platform", "ssh", "--inventory", "hosts.yaml"]
    monkeypatch.chdir(place)
    monkeypatch.setenv("HOME", str(home))
    assert entry(command) == 0
    assert "mechanism " in capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_scenarios_and_other_yaml_of_a_page_are_sound(page: Path, place: Path) -> None:
    kinds = registry("faults").names()
    for block in blocks_of(page):
        if is_scenario(block):
            path = place / (block.file or "scenario.yaml")
            path.write_text(block.text)
            foreign = set(re.findall(r"kind: ([\w-]+)", block.text)) - set(kinds) - set(registry("jobs").names())
            with pytest.raises(ScenarioError) if block.refused else nullcontext():
                load_scenario(path, names=None if foreign else known_names())
        elif block.language == "yaml":
            assert yaml.safe_load(block.text), block.where
            if block.file is not None and "/" not in block.file:
                (place / block.file).write_text(block.text)  # a scenario may name it


def test_the_example_of_a_nightly_job_only_calls_what_there_is(place: Path) -> None:
    """It cannot run here: so its YAML is parsed, and the command line and pytest read each of its commands."""
    page = ROOT / "docs" / "guides" / "nightly.md"
    files = {block.file: yaml.safe_load(block.text) for block in blocks_of(page) if block.language == "yaml"}
    github, gitlab = files[".github/workflows/nightly.yml"], files[".gitlab-ci.yml"]["nightly"]
    steps = github["jobs"]["chaos"]["steps"]
    scripts = [step["run"] for step in steps if "run" in step]
    found = [words for text in [*scripts, *gitlab["script"], *gitlab["after_script"]] for words in commands(text)]
    found += [words for text in re.findall(r"`(chaos [^`]+)`", page.read_text()) for words in commands(text)]
    assert [words[0] for words in found].count("heal") >= 4
    for words in found:
        parse(words, page.name, place)
    assert all(step["if"] == "always()" for step in steps[steps.index(heal_of(steps)) :])
    options = {word.split("=")[0] for text in scripts for word in text.split() if word.startswith("--")}
    message = (ROOT / "chaos" / "pytest_plugin" / "options.py").read_text()
    assert all(option in message for option in options if option.startswith("--chaos"))


def nightly_scripts() -> dict[str, tuple[bool, list[str]]]:
    """Of each example of a nightly job: whether the work tree is cleaned first, and its commands in their order."""
    page = ROOT / "docs" / "guides" / "nightly.md"
    files = {block.file: yaml.safe_load(block.text) for block in blocks_of(page) if block.language == "yaml"}
    checkout, *steps = files[".github/workflows/nightly.yml"]["jobs"]["chaos"]["steps"]
    assert checkout["uses"].startswith("actions/checkout@")
    gitlab = files[".gitlab-ci.yml"]["nightly"]
    return {
        "github": (checkout.get("with", {}).get("clean", True), [step["run"] for step in steps if "run" in step]),
        "gitlab": ("GIT_CLEAN_FLAGS" not in gitlab.get("variables", {}), gitlab["script"] + gitlab["after_script"]),
    }


@pytest.mark.parametrize("system", ["github", "gitlab"])
def test_a_later_nightly_job_heals_what_an_earlier_one_has_left(
    tmp_path: Path, system: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its commands are run up to the first heal, after what cleans the work tree of a runner that was killed."""
    cleans, scripts = nightly_scripts()[system]
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    tree = tmp_path / "tree"
    tree.mkdir()
    (given,) = {words[1] for text in scripts for words in re.findall(r"(--chaos-reports) (\S+)", text)}
    reports = tree / Path(given).expanduser()
    run = create_run(reports, "killed")
    with run.lock:
        left = make_private_directory(run.ledger, run.token, parent=tmp_path)
    (tree / ".gitignore").write_text((ROOT / ".gitignore").read_text())
    subprocess.run(["git", "init", "--quiet", tree], check=True)
    if cleans:
        subprocess.run(["git", "clean", "-ffdx", "--quiet"], cwd=tree, check=True)
    healing = next(number for number, text in enumerate(scripts) if text.startswith("chaos heal"))
    training = next(number for number, text in enumerate(scripts) if text.startswith("pytest"))
    assert healing < training
    said = ""
    for text in scripts[:training]:
        if "pip install" not in text and text != "chaos doctor":
            done = subprocess.run(["bash", "-ec", text], cwd=tree, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
            said += done.stdout
    assert not left.exists() and f"removed {left}" in said, said
    assert (reports / run.run).is_dir()
    after = [text for text in scripts[training:] if text.startswith("chaos heal")]
    assert all(f"--reports {given}" in text for text in after) and after


def test_the_nightly_job_trains_on_the_devices_and_touches_no_card() -> None:
    chosen = set(re.findall(r'pytest scenarios/ -m "([^"]+)"', (ROOT / "docs" / "guides" / "nightly.md").read_text()))
    (marks,) = {one for one in chosen if "card" in one}
    files = [str(path.relative_to(ROOT)) for path in SHIPPED.rglob("device-*.yaml")]
    command = [sys.executable, "-m", "pytest", *files, "-m", marks, "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    collected = set(re.findall(r"scenarios/mindspore/(device-[\w-]+)\.yaml::", done.stdout))
    assert collected == {"device-kill", "device-uce"}, done.stdout + done.stderr


def heal_of(steps: list[dict[str, str]]) -> dict[str, str]:
    """The step that heals after the run."""
    return [step for step in steps if step.get("run", "").startswith("chaos heal")][-1]


@pytest.mark.parametrize("by", ["the device plugin", "ClusterD"])
@pytest.mark.parametrize(("cards", "code"), [("", 0), (" ", 0), ("Ascend910-3", 1)], ids=["none", "blank", "one"])
def test_the_search_for_quarantined_cards_finds_one(
    place: Path, perform: Perform, cards: str, code: int, by: str
) -> None:
    """With a kubectl that prints what the vendor's documents show."""
    for block in blocks_of(ROOT / "docs" / "guides" / "nightly.md"):
        if block.language == "bash":
            perform(block)
    config_map: dict[str, Any] = {
        "metadata": {"name": "mindx-dl-deviceinfo-node1"},
        "data": {"ManuallySeparateNPU": cards},
    }
    manual: dict[str, Any] = {
        "metadata": {"name": "clusterd-manual-info-cm"},
        "data": {"node1": json.dumps({"Total": cards.split()})},
    }
    if by == "ClusterD":
        manual["data"]["node2"] = json.dumps({"Total": []})
        config_map["data"]["ManuallySeparateNPU"] = ""
    else:
        manual["data"] = {}
    others = {"metadata": {"name": "another"}, "data": {"ManuallySeparateNPU": "no device info"}}
    done = look_for_cards(place, [others, config_map, manual])
    assert done.returncode == code, done.stderr
    assert ("node1: Ascend910-3" in done.stderr) == bool(code)


@pytest.mark.parametrize("data", [None, {}, {"DeviceInfoCfg": ""}])
def test_the_search_for_quarantined_cards_is_red_where_nobody_knows(
    place: Path, perform: Perform, data: dict[str, str] | None
) -> None:
    for block in blocks_of(ROOT / "docs" / "guides" / "nightly.md"):
        if block.language == "bash":
            perform(block)
    config_map: dict[str, Any] = {"metadata": {"name": "mindx-dl-deviceinfo-node1"}}
    done = look_for_cards(place, [config_map if data is None else config_map | {"data": data}])
    assert done.returncode == 1 and "node1: not known: there is no ManuallySeparateNPU" in done.stderr
    done = look_for_cards(place, [])
    assert done.returncode == 1 and "not known: no node has a ConfigMap" in done.stderr


def look_for_cards(place: Path, config_maps: list[dict[str, Any]]) -> subprocess.CompletedProcess[str]:
    """Run the page's search with a kubectl that prints these."""
    kubectl = place / "kubectl"
    kubectl.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps({'items': config_maps})}\nEND\n")
    kubectl.chmod(0o755)
    script = place / "ci" / "no-quarantined-cards.sh"
    environment = {**os.environ, "PATH": f"{place}:{os.environ['PATH']}"}
    return subprocess.run(["bash", script], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("page", TEXTS, ids=ids)
def test_links_lead_to_files_and_headings_that_are_there(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", re.sub(r"```.*?```", "", page.read_text(), flags=re.S)):
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), f"{page.name}: {target}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", path.read_text(), re.M)
            anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in anchors, f"{page.name}: {target}"


def test_the_table_of_commands_has_every_command() -> None:
    rows = re.findall(
        r"^\| `chaos (?P<command>[^`]+)` \|", (ROOT / "docs" / "reference" / "commands.md").read_text(), re.M
    )
    assert {row.split()[0] for row in rows} == set(COMMANDS)


@pytest.mark.parametrize("page", TEXTS, ids=ids)
def test_a_command_that_is_named_in_a_text_can_be_parsed(page: Path, place: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for span in re.findall(r"`chaos ([a-z][^`]*)`", text):
        words = [one for word in shlex.split(span.replace("…", "")) for one in PLACEHOLDERS.get(word, [word])]
        parse(words, f"{page.name}: {span}", place, whole=False)


PLACEHOLDERS: dict[str, list[str]] = {
    "SCENARIO": ["kill-rank"],
    "FILE": ["docs/reference/logs.md"],
    "RUN": ["a-run"],
    "NAME": ["moments-zeroed"],
    "N": ["1"],
    "S": ["1"],
    "DIR": ["."],
    "PID": ["1"],
    "[RUN]": [],
    "[SCENARIO]": [],
}
"""What stands for something in a text, and a thing that it stands for."""


def commands(text: str) -> list[list[str]]:
    """The calls of ``chaos`` in a script, word by word, without what pipes and redirections add."""
    joined = text.replace("\\\n", " ")
    found = []
    for line in joined.splitlines():
        for part in re.split(r"\|\|?|&&|;|>", line):
            words = shlex.split(part, comments=True)
            if words and words[0] == "chaos":
                found.append(words[1:])
    return found


def parse(words: list[str], where: str, place: Path, *, whole: bool = True) -> None:
    """Let the command line read the words, and do nothing. Paths are those of the page's directory.

    Of a command that is not ``whole`` an argument may be missing.
    """
    name, *arguments = words
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        command = cli.get_command(click.Context(cli), name)
        assert command is not None, f"{where}: there is no command {name}"
        try:
            command.make_context(name, arguments)
        except click.MissingParameter as error:
            assert not whole, f"{where}: {error.format_message()}"
        except click.UsageError as error:
            pytest.fail(f"{where}: chaos {' '.join(words)}: {error.format_message()}")


def test_each_example_of_an_extension_has_less_than_60_lines() -> None:
    examples = [block for block in blocks_of(ROOT / "docs" / "guides" / "extending.md") if block.language == "python"]
    assert len(examples) == 7
    assert all(block.text.count("\n") < 60 for block in examples)
