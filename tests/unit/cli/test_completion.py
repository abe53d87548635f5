"""What a shell completes at Tab: names of scenarios, runs, kinds and parameters, without the planner or MindSpore."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from chaos.cli.main import COMMANDS, COMPLETE, cli
from chaos.cli.shell_words import BashWords

PROGRAM = Path(sys.executable).with_name("chaos")
HEAVY = {"jsonschema", "mindspore", "numpy", "pydantic", "rich"}


PHASES = """\
chaos: 1
name: phases
tags: [mine, ttp]
variables: {ranks: 4}
matrix:
  phase: [step.begin, step.end]
  strategy: [dump, low level]
"""


def completed(*words: str) -> list[str]:
    """What follows a line; its last word is the incomplete one."""
    *before, incomplete = words
    items = ShellComplete(cli, {}, "chaos", "_CHAOS_COMPLETE").get_completions(before, incomplete)
    return [item.value if item.type == "plain" else f"<{item.type}>" for item in items]


def by_the_shell(line: str, variable: str = "_CHAOS_COMPLETE") -> subprocess.CompletedProcess[str]:
    """Ask as the script of bash does, and print the modules that were imported for the answer."""
    words = line.split(" ")
    environment = {**os.environ, "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), variable: "bash_complete"}
    program = "import sys; from chaos.cli.main import entry; entry(); print(*sys.modules, file=sys.stderr)"
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with a scenario of its own and three runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "my-own.yaml").write_text("chaos: 1\nname: my-own\n")
    (tmp_path / "scenarios" / "phases.yaml").write_text(PHASES)
    (tmp_path / "scenarios" / "broken.yaml").write_text("chaos: 1\nmatrix: {a: [1\n")
    (tmp_path / "mine.yaml").write_text("chaos: 1\n")
    for number, name in enumerate(("b-1", "a-2", "c-3")):
        run = tmp_path / "reports" / name / "run.json"
        run.parent.mkdir(parents=True)
        run.write_text("{}")
        os.utime(run, (number, number))
    (tmp_path / "reports" / "latest").symlink_to("c-3")
    return tmp_path


def test_commands_and_options_are_completed() -> None:
    assert completed("") == list(COMMANDS)
    assert completed("in") == ["init", "inject"]
    assert "--keep-going" in completed("run", "--k")
    assert completed("run", "--sdk", "") == ["auto", "standin", "vendor"]


@pytest.mark.parametrize("command", ["run", "plan", "validate", "list", "doctor", "soak", "calibrate", "trend", "gate"])
def test_names_of_scenarios_are_completed(place: Path, command: str) -> None:
    assert completed(command, "m") == ["mine.yaml", *(name for name in completed(command, "m") if name != "mine.yaml")]
    assert completed(command, "my-o") == ["my-own"]
    assert completed(command, "plain-kill-r") == ["plain-kill-rank"]
    assert completed(command, "scenarios/") == ["<file>"]
    assert completed(command, "none-of-them") == ["<file>"]


@pytest.mark.parametrize("command", ["run", "plan", "soak", "calibrate"])
def test_cells_of_the_scenarios_on_the_line_are_completed(place: Path, command: str) -> None:
    cells = [
        f"phase=step.{end},strategy={strategy}" for end in ("begin", "end") for strategy in ("dump", '"low level"')
    ]
    assert completed(command, "phases", "--cell", "") == cells
    assert completed(command, "phases", "--cell", "phase=step.e") == cells[2:]
    assert completed(command, "--cell", "") == completed(command, "my-own", "--cell", "") == []
    assert completed(command, "phases", "--set", "strategy=dump", "--cell", "") == cells[::2]
    assert completed(command, "broken", "no-such", "-", "phases", "--cell", "phase=step.b") == cells[:2]
    assert completed(command, "scenarios/phases.yaml", "--cell=phase=step.b") == cells[:2]


@pytest.mark.parametrize("command", ["run", "plan", "soak", "calibrate"])
def test_variables_and_axes_are_completed_and_the_values_of_the_file(place: Path, command: str) -> None:
    assert completed(command, "phases", "--set", "") == ["ranks=", "phase=", "strategy="]
    assert completed(command, "phases", "--set", "phase=step.b") == ["phase=step.begin"]
    assert completed(command, "phases", "--set", "ranks=") == ["ranks=4"]
    assert completed(command, "phases", "--set", "none=") == completed(command, "--set", "") == []


def test_tags_are_completed(place: Path) -> None:
    assert completed("list", "--tag", "min") == ["mindformers", "mindspore", "mine"]
    assert completed("list", "scenarios", "--tag", "") == completed("list", "phases", "--tag", "") == ["mine", "ttp"]


@pytest.mark.processes
def test_a_named_pipe_is_left_to_the_command(place: Path) -> None:
    os.mkfifo(place / "pipe")
    assert completed("run", "pipe", "--cell", "") == []


@pytest.mark.parametrize(
    "command", [("report",), ("analyze",), ("watch",), ("heal",), ("compare", "c-3")], ids=" ".join
)
def test_runs_are_completed_the_newest_first(place: Path, command: tuple[str, ...]) -> None:
    assert completed(*command, "") == ["latest", "c-3", "a-2", "b-1"]
    assert completed(*command, "a") == ["a-2"]
    assert completed(*command, "../") == ["<file>"]


def test_runs_of_another_directory_are_completed(place: Path) -> None:
    (place / "reports").rename(place / "other")
    assert completed("report", "") == ["<file>"]
    assert completed("report", "--reports", "other", "a") == ["a-2"]


@pytest.mark.parametrize("words", [("faults",), ("inject",), ("list", "--fault"), ("init", "--fault")], ids=" ".join)
def test_kinds_of_faults_are_completed(words: tuple[str, ...]) -> None:
    assert completed(*words, "cpu-") == ["cpu-load", "cpu-quota"]


def test_parameters_of_a_kind_are_completed() -> None:
    assert completed("inject", "cpu-quota", "--set", "") == ["cores="]
    assert completed("inject", "cpu-quota", "--rank", "1", "--set", "c") == ["cores="]
    assert completed("inject", "--set", "") == []
    assert completed("inject", "no-kind", "--set", "") == []


def test_mechanisms_and_platforms_are_completed() -> None:
    assert completed("list", "--mechanism", "t") == ["TRE", "TSP", "TTP"]
    assert "local" in completed("run", "--platform", "")


def test_what_goes_wrong_offers_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Path) -> list[str]:
        raise OSError("it cannot be read")

    monkeypatch.setattr("chaos.cli.completion.run_names", broken)
    assert completed("report", "") == []


@pytest.mark.processes
@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("chaos ru", "plain,run"),
        ("chaos run plain-kill-r", "plain,plain-kill-rank"),
        ("chaos plan plain-kill-r", "plain,plain-kill-rank"),
        ("chaos faults cpu-q", "plain,cpu-quota"),
        ("chaos inject cpu-quota --set c", "plain,cores="),
        ("chaos list --mechanism tt", "plain,TTP"),
        ("chaos run --platform ku", "plain,kubernetes"),
        ("chaos report latest-of-none", "file,latest-of-none"),
        ("chaos soak plain-kill-r", "plain,plain-kill-rank"),
        ("chaos soak --kind plai", "plain,plain"),
        ("chaos compare --at", "plain,--at-most"),
        ("chaos image --n", "plain,--name"),
        ("chaos schema --mar", "plain,--markdown"),
    ],
)
def test_a_shell_waits_for_no_heavy_import(line: str, answer: str) -> None:
    asked = by_the_shell(line)
    assert asked.stdout.splitlines() == [answer]
    assert not {*HEAVY, "yaml"} & set(asked.stderr.split())


@pytest.mark.processes
@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("chaos run kill-rank-phases --cell phase=f", "plain,phase=forward"),
        ("chaos soak kill-rank --set v", "plain,victim="),
        ("chaos list --tag smo", "plain,smoke"),
    ],
)
def test_for_what_scenarios_hold_their_yaml_alone_is_read(line: str, answer: str) -> None:
    asked = by_the_shell(line)
    assert asked.stdout.splitlines() == [answer]
    assert not HEAVY & set(asked.stderr.split())


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("run phases --cell phase = step.e", "step.end,strategy=dump"),
        ("run phases --set phase =", "step.begin"),
        ("run phases --cell = phase = step.end,strategy =", "'\"low level\"'"),
        ("run phases --cell = ph", "phase=step.begin,strategy=dump"),
        ("run phases --set ran", "ranks="),
        ("run phases --sdk = v", "vendor"),
    ],
)
def test_words_that_bash_has_split_at_an_equals_sign_are_completed(
    place: Path, monkeypatch: pytest.MonkeyPatch, words: str, answer: str
) -> None:
    monkeypatch.setenv("COMP_WORDS", f"chaos {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split())))
    assert BashWords(cli, {}, "chaos", "_CHAOS_COMPLETE").complete().splitlines().count(f"plain,{answer}") == 1


@pytest.mark.processes
def test_bash_fills_in_the_word() -> None:
    for variable, name in COMPLETE.items():
        function = f"_{name.replace('-', '_')}_completion"
        script = f"""
            eval "$({variable}=bash_source {PROGRAM.with_name(name)})"
            COMP_WORDS=({name} run plain-kill-r) COMP_CWORD=2
            {function} {PROGRAM.with_name(name)}
            echo "${{COMPREPLY[@]}}"
            COMP_WORDS=({name} run kill-rank-phases --cell phase = f) COMP_CWORD=6 COMPREPLY=()
            {function} {PROGRAM.with_name(name)}
            echo "${{COMPREPLY[@]}}"
        """
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
        assert (done.stdout, done.stderr) == ("plain-kill-rank\nforward\n", "")


@pytest.mark.processes
def test_bash_writes_no_blank_behind_the_name_of_a_variable() -> None:
    script = f"""
        eval "$(_CHAOS_COMPLETE=bash_source {PROGRAM})"
        compopt() {{ echo "$@"; }}
        COMP_WORDS=(chaos run kill-rank --set vic) COMP_CWORD=4
        _chaos_completion {PROGRAM}
        echo "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("-o nospace\nvictim=\n", "")


ZSH = """
    fpath=($PWD $fpath)
    compdef() { print compdef $@ }
    compadd() { print -r -- ${completions[@]} ${(q)@} }
    _describe() { print -r -- ${completions_with_descriptions[@]} ${(q)@} }
    autoload -U _chaos
    words=(chaos run plain-kill-r) CURRENT=3; _chaos
    words=(chaos run plain-kill-rank --set vic) CURRENT=5; _chaos_completion
    words=(chaos inject kill --set wi) CURRENT=5; _chaos_completion
"""


@pytest.mark.processes
def test_zsh_completes_every_word_and_writes_no_blank_behind_the_name_of_a_variable(tmp_path: Path) -> None:
    """Once the file has been loaded, its function alone is called: by its name in ``compdef``."""
    environment = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"}
    script = subprocess.run(
        [PROGRAM], env={**environment, "_CHAOS_COMPLETE": "zsh_source"}, capture_output=True, text=True, check=True
    ).stdout
    loaded = script.partition("== loadautofunc")[2].partition("else")[0]
    assert loaded.index("compdef _chaos_completion chaos") < loaded.index('_chaos_completion "$@"')
    assert script.count('"${behind[@]}"') == 2 and "behind=(-S '')" in script
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed; its script was read")
    (tmp_path / "_chaos").write_text(script)
    done = subprocess.run(["zsh", "-f", "-c", ZSH], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stderr == ""
    *plain, described = done.stdout.splitlines()
    assert plain == [
        "compdef _chaos_completion chaos",
        "plain-kill-rank -U -V unsorted -a completions",
        "victim= -S '' -U -V unsorted -a completions",
    ]
    assert described.startswith("with=:launcher: kill the launcher")
    assert described.endswith(" -V unsorted completions_with_descriptions -U -S ''")


@pytest.mark.processes
@pytest.mark.parametrize(("shell", "word"), [("zsh", "#compdef chaos"), ("fish", "--command chaos")])
def test_scripts_of_other_shells_are_printed(shell: str, word: str) -> None:
    environment = {**os.environ, "_CHAOS_COMPLETE": f"{shell}_source"}
    done = subprocess.run([PROGRAM], env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and word in done.stdout
