"""Defects of the replacement of lost ranks (ARF): too many new processes, a wrong state in them, twice."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from chaos.selftest.calls import called_again, never_called, started_anew
from chaos.selftest.defect import Mutate, file_defect
from chaos.selftest.files import SDK_LOG, line_changed, line_doubled
from chaos.selftest.records import Records, recorded

LOST = 2


_defect = partial(file_defect, base="arf", check="mechanism")


def _joins_with(rank: int, step: int) -> Mutate:
    """Return a mutation: the new process goes on with the state that a rank had after a step."""

    def mutate(run_dir: Path) -> None:
        theirs = Records(run_dir, baseline=True).digest(rank, step)["parameters"]
        recorded(lambda records: records.last("initial", rank=LOST).update(parameters=theirs))(run_dir)

    return mutate


def _as_it_began(run_dir: Path) -> None:
    """Let the new process go on with the weights with which every job begins."""
    fresh = Records(run_dir, baseline=True).first("initial", rank=LOST)["parameters"]
    recorded(lambda records: records.last("initial", rank=LOST).update(parameters=fresh))(run_dir)


def _without_moments(run_dir: Path) -> None:
    fresh = Records(run_dir, baseline=True).first("initial", rank=LOST)["parameters"]
    moments = {name: value for name, value in fresh.items() if name.startswith("moments.")}
    recorded(lambda records: records.last("initial", rank=LOST)["parameters"].update(moments))(run_dir)


def _counts_from_0(records: Records) -> None:
    records.last("train.begin", rank=LOST)["initial_step"] = 0


def _copied_before_groups(records: Records) -> None:
    """Copy the state while rank 1 is still rebuilding its groups."""
    left = records.first("handler.exit", name="rebuild_group", rank=1)
    after = records.last("handler.exit", name="repair")["mono"] - left["mono"] + 1
    records.delay(left["mono"], after, files="train-rank_1")


def _reads_a_checkpoint(records: Records) -> None:
    joins = records.first("train.joins", rank=LOST)
    path = "checkpoints/rank_2/sliced-1_4.ckpt"
    begun = records.insert(joins, event="load.begin", path=path)
    records.insert(begun, event="load.end", path=path, parameters=21)


def _started_a_second_time(records: Records) -> None:
    records.insert(records.last("agent.start", rank=LOST))


def _never_replaced(records: Records) -> None:
    """Remove every record of a second process of rank 2."""
    dead = records.first("fault.injecting")["pid"]
    records.drop([record for record in records.all(rank=LOST) if record["pid"] != dead])
    records.drop([record for record in records.all("child.exit", child_rank=LOST) if record["child_pid"] != dead])
    for name in [name for name, lines in records.files.items() if not lines]:
        del records.files[name]


DEFECTS = (
    _defect(
        "arf-survivor-restarted",
        "Rank 0, which was well, got a new process, too.",
        started_anew(0),
        "only ranks 2 get a new process",
        "rank 0 was replaced: processes",
    ),
    _defect(
        "arf-lost-rank-started-twice",
        "The new process of rank 2 was started twice.",
        recorded(_started_a_second_time),
        "rank 2 was started",
    ),
    _defect(
        "arf-lost-rank-not-replaced",
        "Rank 2 never got a new process.",
        recorded(_never_replaced),
        "rank 2 was not started again",
    ),
    _defect(
        "arf-acts-twice",
        "The SDK's log has two replacements for one death.",
        line_doubled(SDK_LOG, "Start do arf repair"),
        "the SDK replaces lost ranks 1 times",
        "2 times by its log",
    ),
    _defect(
        "arf-copied-twice",
        "The new process got its state twice.",
        called_again("repair", LOST),
        "repair was called 2 times on rank 2 in recovery 1",
    ),
    _defect(
        "arf-nothing-copied",
        "The new process got no state.",
        never_called("repair", LOST),
        "repair was not called on the new rank 2",
    ),
    _defect(
        "arf-nobody-gave-its-state",
        "No surviving rank of the replica group gave its state.",
        never_called("repair", 0),
        "no surviving rank of replica group [0, 2] gave its state",
    ),
    _defect(
        "arf-groups-not-rebuilt",
        "Rank 1 trains on in the groups of before.",
        never_called("rebuild_group", 1),
        "rebuild_group was not called on rank 1",
    ),
    _defect(
        "arf-copied-before-groups",
        "The state was copied while rank 1 still rebuilt its groups.",
        recorded(_copied_before_groups),
        "before any state is copied",
        "before rank 1 had rebuilt its groups",
    ),
    _defect(
        "arf-reads-a-checkpoint",
        "The new process read a checkpoint in place of a replica's state.",
        recorded(_reads_a_checkpoint),
        "no checkpoint is read",
        "rank 2 read checkpoints/rank_2/sliced-1_4.ckpt",
    ),
    _defect(
        "arf-downgraded-to-retry",
        "The SDK reports the success of a strategy that was not planned.",
        line_changed(
            SDK_LOG, r"'Mindio do repair operation ok', {}, 'recover'", "'Mindio do repair operation ok', {}, 'dump'"
        ),
        "the SDK reports success of dump, where recover is planned",
    ),
    _defect(
        "arf-state-of-the-dead-process",
        "The new process goes on with the state that the dead process held two steps earlier.",
        _joins_with(LOST, 2),
        "rank 2 held another state than that of step 4",
        "of step 2)",
        check="resume",
    ),
    _defect(
        "arf-state-of-wrong-group",
        "The new process got the slices of another replica group.",
        _joins_with(1, 4),
        "rank 2 held another state than that of step 4",
        "is rank 1's of step 4",
        check="resume",
    ),
    _defect(
        "arf-state-of-the-beginning",
        "The new process goes on with the weights that every job begins with.",
        _as_it_began,
        "rank 2 held another state than that of step 4",
        check="resume",
    ),
    _defect(
        "arf-moments-of-the-beginning",
        "The new process got the weights and not the moments.",
        _without_moments,
        "rank 2 held another state than that of step 4",
        "moments.layer1.weight.param",
        check="resume",
    ),
    _defect(
        "arf-step-counter-reset",
        "The new process counts its steps from 0 again.",
        recorded(_counts_from_0),
        "rank 2's step counter was 0, not 4",
        check="resume",
    ),
)
