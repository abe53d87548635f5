"""``chaos init`` writes a scenario once, says what it found and guessed, and refuses in words that help."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import chaos.cli.commands.init.writing as init_command
from chaos.cli import codes
from chaos.cli.main import entry
from chaos.init.entries import Wishes
from chaos.init.work import work_out
from chaos.scenario.load import load_scenario

HABITS = Path(__file__).parents[2] / "habits"
TRAINS = "import mindspore\nmodel.train(1, data, callbacks=[])\n"


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(HABITS / "every-rank-saves", tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(init_command, "_asked", lambda *_: pytest.fail("a question without a terminal"))
    return tmp_path


def files(place: Path) -> set[str]:
    return {path.name for path in place.iterdir()}


def test_a_scenario_is_written_and_planned_with_what_was_found(job: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = files(job)
    assert entry(["init"]) == 0
    printed = capfd.readouterr().out
    assert files(job) - before == {"finetune-kill.yaml"}
    assert load_scenario(job / "finetune-kill.yaml").cells[0].scenario.job.steps == 12
    assert "train.sh:4: msrun starts finetune.py on 2 ranks" in printed
    assert "job.resume_arguments: --resume_from=./saved (finetune.py:35" in printed
    assert "chaos run finetune-kill.yaml" in printed
    assert entry(["plan", "finetune-kill.yaml"]) == 0


def test_a_file_that_is_there_is_not_touched(job: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (job / "finetune-kill.yaml").write_text("mine")
    before = files(job)
    assert entry(["init"]) == codes.USAGE
    assert "is there already" in capfd.readouterr().err
    assert (job / "finetune-kill.yaml").read_text() == "mine"
    assert entry(["init", "--name", "other"]) == 0
    assert entry(["init", "--force"]) == 0
    assert (job / "finetune-kill.yaml").read_text() != "mine"
    assert files(job) - before == {"other.yaml"}


def test_flags_take_the_place_of_guesses(job: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["--ranks=4", "--steps=30", "--checkpoint-interval=10", "--fault-step=15", "--savers=replica groups"]
    arguments += ["--argument=--epochs=5", "--resume-argument=--go", "--fault=terminate", "--name=mine"]
    assert entry(["init", *arguments]) == 0
    scenario = load_scenario(job / "mine.yaml").cells[0].scenario
    assert (scenario.cluster.ranks, scenario.job.steps, scenario.job.checkpoint_interval) == (4, 30, 10)
    assert (scenario.job.arguments, scenario.job.resume_arguments) == (("--epochs=5",), ("--go",))
    assert (scenario.faults[0].kind, scenario.faults[0].trigger.step) == ("terminate", 15)
    assert "CHECK" not in (job / "mine.yaml").read_text()
    assert "guessed" not in capfd.readouterr().out


def test_what_the_plan_refuses_is_not_written(job: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = files(job)
    assert entry(["init", "--fault-step=99"]) == codes.USAGE
    said = capfd.readouterr().err
    assert "finetune-kill.yaml" in said and "step 99 of 12" in said
    assert files(job) == before


def test_a_dry_run_prints_the_scenario_and_writes_nothing(job: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = files(job)
    assert entry(["init", "--dry-run"]) == 0
    assert "chaos: 1\nname: finetune-kill\n" in capfd.readouterr().out
    assert files(job) == before


def test_json_says_the_same(job: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert entry(["init", "--json"]) == 0
    printed = json.loads(capfd.readouterr().out)
    assert printed["file"] == "finetune-kill.yaml"
    assert (job / "finetune-kill.yaml").read_text() == printed["text"]
    assert printed["found"] and printed["guessed"] and printed["next"]


def test_names_of_the_job_cannot_break_out_of_a_comment(tmp_path: Path) -> None:
    script = tmp_path / "t\nfaults: []\x1b[0m.py"
    script.write_text(TRAINS + "parser.add_argument('--max-steps', default=20)\n")
    text = work_out(tmp_path, Wishes(fault="kill", name="t"), script=script, arguments=None, ask=None).text
    assert "  steps: 20  # t faults: []" in text
    assert [line for line in text.splitlines() if line.startswith("faults")] == ["faults:"]
    assert "\x1b" not in text


@pytest.mark.parametrize("text", ["x = " + "1 + " * 5000 + "1\n", "model.train(1e999, data, callbacks=[])\n"])
def test_extreme_scripts_are_refused_or_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.py").write_text(TRAINS + text + "parser.add_argument('--max-steps', default=9e999)\n")
    assert entry(["init", str(tmp_path), "--script", "t.py"]) in (0, codes.USAGE)


def test_several_scripts_are_listed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text(TRAINS)
    (tmp_path / "helper.py").write_text("import mindspore\n")
    assert entry(["init", str(tmp_path)]) == codes.USAGE
    said = capfd.readouterr().err
    assert "one.py  (one.py:2 trains)" in said and "two.py" in said and "helper.py" not in said and "--script" in said
    assert entry(["init", str(tmp_path), "--script", "two.py"]) == 0
    assert (tmp_path / "two-kill.yaml").exists()


def test_a_directory_without_a_script_says_what_would_be_one(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert entry(["init", str(tmp_path)]) == codes.USAGE
    assert "it has no Python file" in capfd.readouterr().err
    (tmp_path / "setup.py").write_text("x = 1\n")
    assert entry(["init", str(tmp_path)]) == codes.USAGE
    said = capfd.readouterr().err
    assert "setup.py" in said and "chaos init --example" in said


def test_a_script_of_another_framework_is_told_what_is_started(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.py").write_text("import paddle\nopt = paddle.optim.SGD(p)\nfor x in data:\n    loss.backward()\n")
    (tmp_path / "run.sh").write_text("torchrun --nproc_per_node 2 t.py\n")
    assert entry(["init", str(tmp_path)]) == 0
    assert "t.py imports paddle: the job kind mindspore starts it with msrun" in capfd.readouterr().out


def test_a_job_that_never_loads_is_not_resumed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.py").write_text(
        TRAINS + "for step in x:\n    if step % 5 == 0:\n        ms.save_checkpoint(n, 'a')\n"
    )
    assert entry(["init", str(tmp_path)]) == 0
    assert "never loads a checkpoint" in capfd.readouterr().out
    assert load_scenario(tmp_path / "t-kill.yaml").cells[0].scenario.expect.resume == "none"


def test_a_job_that_never_saves_just_ends(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.py").write_text(TRAINS)
    assert entry(["init", str(tmp_path)]) == 0
    assert "no save of a checkpoint was found" in capfd.readouterr().out


def test_in_a_terminal_only_what_is_unknown_is_asked(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(
        TRAINS + "ms.load_checkpoint('a')\nfor step in x:\n    if step % 5 == 0:\n        ms.save_checkpoint(n, 'a')\n"
    )
    asked: list[tuple[str, str]] = []

    def answer(question: str, default: str) -> str:
        asked.append((question.split("(")[0].strip(), default))
        return "20" if "steps" in question else default

    result = work_out(tmp_path, Wishes(fault="kill"), script=None, arguments=None, ask=answer)
    assert asked == [
        ("How many ranks", "2"),
        ("How many steps does each rank train in all?", "15"),
        ("With which further argument does it go on from its checkpoint", "none"),
    ]
    assert result.draft.steps.value == 20
    assert not result.draft.guesses


def test_the_example_is_written_and_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaos.init.written_example.has_framework", lambda: True)
    assert entry(["init", "--example", str(tmp_path / "e")]) == 0
    assert files(tmp_path / "e") == {"train.py", "run.sh", "train-kill.yaml"}
    text = (tmp_path / "e" / "train-kill.yaml").read_text()
    assert "CHECK" not in text
    assert entry(["plan", str(tmp_path / "e" / "train-kill.yaml")]) == 0
    assert entry(["init", "--example", str(tmp_path / "e")]) == codes.USAGE


def test_without_mindspore_the_example_is_plain_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("chaos.init.written_example.has_framework", lambda: False)
    monkeypatch.chdir(tmp_path)
    assert entry(["init", "--example"]) == 0
    assert "MindSpore is not installed here" in capfd.readouterr().out
    assert files(tmp_path / "chaos-example") == {"plain.yaml"}
    assert entry(["plan", "chaos-example/plain.yaml"]) == 0
