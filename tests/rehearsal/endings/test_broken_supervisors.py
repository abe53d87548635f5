"""A supervisor of the user's own that does not start the ranks again as it should: the run fails, and says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.shipped import SHIPPED
from tests.rehearsal.kit import Chaos, checks_of, said

HOME = SHIPPED / "launchers"
RESTARTED = '["--is-recover=1"] if again else []'
STARTED = "for rank in range(ranks):"
STARTS = "if not failed(start(int(ranks), logs, again, [*command, *recover])):"
GIVES_UP = 'print(f"the ranks have failed'

BROKEN = {
    "never-again": ('"2"]', '"0"]', "resume", "the launcher ended (exit code 1), and ranks 0-1 never joined"),
    "stays": (GIVES_UP, f"time.sleep(1000)\n        {GIVES_UP}", "run", "ranks 0-1 never joined"),
    "one-rank-only": (STARTED, "for rank in range(ranks) if not again else [1]:", "run", "rank 0 never joined"),
    "from-the-beginning": (RESTARTED, "[]", "resume", "rank 0 began with step 1"),
    "without-progress": (RESTARTED, '["--no-such-option"] if again else []', "resume", "rank 0 ended no step"),
    "fails-once-more": (
        STARTS,
        """processes = start(int(ranks), logs, again, [*command, *recover])
        while again == 1 and "loss is" not in Path(logs, "worker_0.again-1.log").read_text():
            time.sleep(0.01)
        if again == 1:
            processes[0].kill()
        if not failed(processes):""",
        "mechanism",
        "rank 0 was started again in attempt resume",
    ),
}
"""What is changed in the supervisor or in its words, the check that must fail, and what it says."""


def scenario(directory: Path, name: str) -> Path:
    before, after, *_ = BROKEN[name]
    words = HOME.joinpath("plain-supervised.yaml").read_text("utf-8")
    program = HOME.joinpath("supervisor.py").read_text("utf-8")
    assert (before in words) != (before in program), before
    path = directory / "plain-supervised.yaml"
    path.write_text(words.replace(before, after) + "deadlines:\n  start: 30s\n", "utf-8")
    directory.joinpath("supervisor.py").write_text(program.replace(before, after), "utf-8")
    return path


@pytest.mark.nightly
@pytest.mark.parametrize("name", BROKEN)
def test_a_supervisor_that_does_not_bring_the_job_back_fails(fresh: Chaos, tmp_path: Path, name: str) -> None:
    done = fresh.run(scenario(tmp_path, name))
    assert done.code == 1, done.output + done.errors
    *_, check, text = BROKEN[name]
    found = [finding for finding in checks_of(done.run.result, "fail") if finding["name"] == check]
    assert text in said(found), said(checks_of(done.run.result, "fail"))
    assert done.run.left() == []
