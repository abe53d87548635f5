"""A baseline is made once for a key, by one harness at a time, and only a complete one is taken."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from chaos.agent.record import Record
from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import DeadlineExpired, Patience
from chaos.history.writer import HistoryWriter
from chaos.machine.lease_holder import Holder, this_holder
from chaos.plan import io
from chaos.plan.model import Plan
from chaos.plan.parts.fault import PlannedFault
from chaos.store.baselines import (
    DIRECTORY,
    BaselineError,
    copy_into,
    find_or_make,
    maker_of,
    name_maker_run,
    why_incomplete,
)
from chaos.store.directory import create_run
from tests.kit.plans import plan_named

WAIT = Patience(20)
PLAN = plan_named("n", last_step=3, steps_per_epoch=3, baseline="none")


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    return tmp_path / "reports"


Make = Callable[..., Path]


@pytest.fixture
def make(reports: Path) -> Make:
    """Make a baseline as a run does; ``steps`` are the last steps of its ranks."""

    def make(*steps: int, plan: Plan = PLAN) -> Path:
        run = create_run(reports, "baseline", "key")
        (run.path / "plan.json").write_text(io.dumps(plan))
        for rank, last in enumerate(steps or (3, 3)):
            record = Record(str(run.path / "history"), run=run.token, attempt="train", rank=rank)
            for step in range(1, last + 1):
                record.write("step.end", step=step)
            record.close()
        run.lock.release()
        return run.path

    return make


def never() -> Path:
    pytest.fail("it must not be made again")


def test_it_is_made_once(reports: Path, make: Make) -> None:
    made = find_or_make(reports, "key", make, wait=WAIT)
    assert made[1] is True
    assert find_or_make(reports, "key", never, wait=WAIT) == (made[0], False)
    other = find_or_make(reports, "another", make, wait=WAIT)
    assert other[1] is True
    assert other[0] != made[0]


def test_of_many_who_want_it_one_makes_it(reports: Path, make: Make) -> None:
    makers: list[str] = []
    together = threading.Barrier(6)

    def want(number: int) -> tuple[Path, bool]:
        def slowly() -> Path:
            makers.append(f"{number} begins")
            made = make()
            makers.append(f"{number} ends")
            return made

        together.wait(60)
        return find_or_make(reports, "key", slowly, wait=WAIT)

    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(want, range(6)))
    assert len(makers) == 2
    assert len({path for path, _ in results}) == 1
    assert sorted(made for _, made in results) == [False] * 5 + [True]


def test_waiting_for_another_maker_has_a_deadline_with_a_name(reports: Path, make: Make) -> None:
    def ask_meanwhile() -> Path:
        with pytest.raises(DeadlineExpired, match="baseline key"):
            find_or_make(reports, "key", never, wait=Patience(0.05))
        return make()

    assert find_or_make(reports, "key", ask_meanwhile, wait=WAIT)[1] is True


KEY = "0a" * 32


def test_who_waits_for_another_maker_learns_once_who_it_is_and_since_when(reports: Path, make: Make) -> None:
    makers: list[Holder | None] = []
    before = time.time()

    def ask_meanwhile() -> Path:
        made = make()
        name_maker_run(reports, KEY, made.name)
        with pytest.raises(DeadlineExpired):
            find_or_make(reports, KEY, never, wait=Patience(0.05), blocked=makers.append)
        return made

    made, _ = find_or_make(reports, KEY, ask_meanwhile, wait=WAIT, blocked=makers.append)
    (maker,) = makers
    assert maker is not None
    assert (maker.pid, maker.run) == (os.getpid(), made.name)
    assert before <= maker.since <= time.time()
    assert maker_of(reports, KEY) is None, "it is made"
    assert find_or_make(reports, KEY, never, wait=WAIT, blocked=makers.append) == (made, False)
    assert len(makers) == 1


def test_a_maker_that_was_killed_and_one_of_no_record_are_nobody(reports: Path) -> None:
    lock = reports / DIRECTORY / f"{KEY}.lock"
    lock.parent.mkdir(parents=True)
    for record in ("", "{", "[]", json.dumps({**asdict(this_holder()), "start_time": 1})):
        lock.write_text(record)
        assert maker_of(reports, KEY) is None
        name_maker_run(reports, KEY, "run")
        assert lock.read_text() == record
    lock.write_text(json.dumps(asdict(this_holder())))
    assert maker_of(reports, KEY) is not None
    assert maker_of(reports / DIRECTORY, f"../{DIRECTORY}/{KEY}") is None, "a key is no path"


def damage_history(run: Path) -> None:
    path = sorted((run / "history").glob("*rank_0*"))[0]
    path.write_bytes(path.read_bytes().replace(b'"seq":2', b'"seq":7'))


def lose_a_rank(run: Path) -> None:
    sorted((run / "history").glob("*rank_1*"))[0].unlink()


def end_a_rank_badly(run: Path) -> None:
    with HistoryWriter(run / "history" / "harness.jsonl", writer="harness", run="r", clock=SYSTEM_CLOCK) as history:
        history.record("rank.exit", attempt="train", rank=1, pid=7, signal=None, code=1)


def give_it_faults(run: Path) -> None:
    fault = PlannedFault("kill", "kill", (1,), {"step": 1, "phase": "step.begin"}, {}, None, None)
    (run / "plan.json").write_text(io.dumps(replace(PLAN, faults=(fault,))))


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (damage_history, "its history is damaged: history/train-rank_0"),
        (lose_a_rank, "rank 1 did not reach step 3"),
        (give_it_faults, "it had faults"),
        (end_a_rank_badly, "rank 1 did not exit with 0"),
        (lambda run: (run / "plan.json").unlink(), "its plan cannot be read"),
        (lambda run: (run / "plan.json").write_text("{}"), "its plan cannot be read"),
        (shutil.rmtree, "its plan cannot be read"),
    ],
)
def test_an_incomplete_one_is_made_again(reports: Path, make: Make, harm: Callable[[Path], object], why: str) -> None:
    first, _ = find_or_make(reports, "key", make, wait=WAIT)
    harm(first)
    reason = why_incomplete(first)
    assert reason is not None
    with pytest.raises(BaselineError, match=why):
        find_or_make(reports, "other", lambda: first, wait=WAIT)
    second, made = find_or_make(reports, "key", make, wait=WAIT)
    assert made is True
    assert second != first
    assert find_or_make(reports, "key", never, wait=WAIT) == (second, False)


def test_what_was_made_incomplete_is_not_kept(reports: Path, make: Make) -> None:
    with pytest.raises(BaselineError, match="rank 1 did not reach step 3"):
        find_or_make(reports, "key", lambda: make(3, 2), wait=WAIT)
    assert find_or_make(reports, "key", make, wait=WAIT)[1] is True


def test_what_making_raises_passes_through_and_frees_the_lock(reports: Path, make: Make) -> None:
    def fail() -> Path:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        find_or_make(reports, "key", fail, wait=WAIT)
    assert find_or_make(reports, "key", make, wait=Patience(1))[1] is True


@pytest.mark.parametrize(
    "entry", ["..", ".", "", "../outside", "{outside}", "link", "latest", "a\0b", "\udc80", "x/../.."]
)
def test_an_entry_that_leads_out_of_the_reports_is_not_followed(
    reports: Path, make: Make, tmp_path: Path, entry: str
) -> None:
    """What lies there is a complete baseline, so that only its place can be the reason."""
    made, _ = find_or_make(reports, "key", make, wait=WAIT)
    outside = tmp_path / "outside-20260101-000000-abcd"
    shutil.copytree(made, outside)
    for place in (tmp_path, reports):
        shutil.copytree(made, place, dirs_exist_ok=True)
    (reports / "link").symlink_to(outside)
    (reports / "link-20260101-000000-abcd").symlink_to(outside)
    (reports / "latest").symlink_to(made.name)
    pointer = next((reports / ".baselines").glob("*.txt"))
    pointer.write_bytes(entry.format(outside=outside).encode("utf-8", "surrogateescape"))
    again, was_made = find_or_make(reports, "key", make, wait=WAIT)
    assert was_made is True
    assert again.parent == reports
    pointer.write_text("link-20260101-000000-abcd")
    assert find_or_make(reports, "key", make, wait=WAIT)[1] is True


def test_a_copy_holds_what_comparisons_need(reports: Path, make: Make, tmp_path: Path) -> None:
    made = make()
    run = create_run(reports, "kill-rank")
    copy_into(made, run.path)
    run.lock.release()
    copied = run.path / "baseline"
    assert why_incomplete(copied) is None
    assert {path.name for path in copied.iterdir()} == {"history", "plan.json", "run.json", "source.json"}
    assert json.loads((copied / "source.json").read_text()) == {"run": made.name}


def test_logs_that_tell_of_losses_are_copied_too(reports: Path, make: Make) -> None:
    made = make()
    logs = made / "logs" / "train"
    logs.mkdir(parents=True, exist_ok=True)
    telling = "{ Epoch:[  1/  1], step:[    1/    8], loss: 1.250, per_step_time: 1ms\n"
    (logs / "worker_0.log").write_text("x" * (1 << 20) + "\n" + telling)
    (logs / "worker_1.log").write_text("nothing\n")
    run = create_run(reports, "kill-rank")
    copy_into(made, run.path)
    run.lock.release()
    assert [path.name for path in (run.path / "baseline" / "logs" / "train").iterdir()] == ["worker_0.log"]
