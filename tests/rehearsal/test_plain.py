"""Plain ranks are judged like those of MindSpore: by the same statements, and no less strictly."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaos.selftest.ckpt_file import CkptFile
from tests.rehearsal.kit import Chaos, Done, Run, checks_of, said

OF_MINDSPORE = {("consistency", "MindSpore gives the SDK the replica groups of the plan", "pass")}
"""A line of MindSpore's own shows it, and nothing else could."""

Once = Callable[[str, Callable[[Chaos], Done]], Done]


@pytest.fixture(scope="module")
def plain(once: Once) -> Done:
    """``chaos run plain-kill-rank.yaml``: a run that passed, never to be changed."""
    done = once("plain", lambda chaos: chaos.run("plain-kill-rank.yaml"))
    assert done.code == 0, done.errors + done.output
    return done


def statements(result: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {(check["name"], check["expected"], check["verdict"]) for check in result["checks"]}


def test_every_statement_about_a_mindspore_job_is_made_about_plain_ranks(plain: Done, passed: Done) -> None:
    assert statements(plain.run.result) | OF_MINDSPORE == statements(passed.run.result)
    assert plain.run.result["not_checked"] == passed.run.result["not_checked"]
    assert [exclusion["name"] for exclusion in plain.run.result["not_checked"]] == ["hygiene"]
    assert plain.run.left() == []


def test_the_result_says_that_there_is_no_framework(plain: Done) -> None:
    simulated = {stand_in["layer"]: stand_in["part"] for stand_in in plain.run.result["simulated"]}
    assert "no framework" in simulated["job"]


def zero(name: str) -> Callable[[CkptFile], None]:
    return lambda content: content.set_content(name, bytes(len(content.content(name))))


@pytest.mark.parametrize("name", ["adam_m.layer1.bias", "layer2.weight", "random_state", "learning_rate"])
def test_a_value_that_is_not_the_saved_one_is_a_failure(plain: Done, chaos: Chaos, tmp_path: Path, name: str) -> None:
    run = Run(shutil.copytree(plain.run.path, tmp_path / plain.run.path.name))
    (path,) = run.path.glob("job/checkpoints/ttp_saved_checkpoints-step_5/rank_*/*.ckpt")
    content = CkptFile(path)
    zero(name)(content)
    content.write()
    done = chaos.analyze(run)
    assert done.code == 1, said(done.json["checks"])
    failed = checks_of(done.json, "fail")
    assert {"checkpoint", "resume"} <= {check["name"] for check in failed}
    assert name in said(failed)
