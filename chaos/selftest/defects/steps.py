"""Defects of the resume: the trained steps, the loaded checkpoint, the state."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from chaos.selftest.ckpt_file import stored
from chaos.selftest.defect import Defect, Mutate, file_defect
from chaos.selftest.files import copied, rewritten
from chaos.selftest.records import Record, Records, chain, recorded

SAVED = 6
ELSEWHERE = "/elsewhere/ttp-of-yesterday"


_defect = partial(file_defect, base="ttp", check="resume")


def _state_of(rank: int, step: int) -> Mutate:
    """Return a mutation: rank 3 goes on with the state that another rank had, or itself had earlier."""

    def mutate(run_dir: Path) -> None:
        theirs = Records(run_dir, baseline=True).digest(rank, step)["parameters"]
        recorded(lambda records: records.first("initial", attempt="resume", rank=3).update(parameters=theirs))(run_dir)

    return mutate


def _initial_of(prefix: str) -> Mutate:
    """Return a mutation: some parameters have the values with which the job begins, not those of the checkpoint."""

    def mutate(run_dir: Path) -> None:
        fresh = Records(run_dir, baseline=True).first("initial", rank=3)["parameters"]

        def change(records: Records) -> None:
            parameters = records.first("initial", attempt="resume", rank=3)["parameters"]
            parameters.update({name: value for name, value in fresh.items() if name.startswith(prefix)})

        recorded(change)(run_dir)

    return mutate


def _loads(records: Records, rank: int, old: str, new: str) -> None:
    for record in records.all(attempt="resume", rank=rank):
        if record["event"] in ("load.begin", "load.end", "checkpoint.read"):
            record["path"] = record["path"].replace(old, new)


def _loads_periodic(records: Records) -> None:
    for record in records.all(attempt="resume", rank=3):
        if record["event"] in ("load.begin", "load.end", "checkpoint.read"):
            place = record["path"].split("ttp_saved_checkpoints")[0]
            record["path"] = f"{place}rank_3/sliced-1_4.ckpt"


def _loads_of_yesterday(records: Records) -> None:
    for record in records.all(attempt="resume", rank=3):
        if record["event"] in ("load.begin", "load.end", "checkpoint.read"):
            record["path"] = f"{ELSEWHERE}/job{record['path'].split('/job')[-1]}"


def _shifted(by: int) -> Mutate:
    """Return a mutation: all steps of rank 1 after the resume have another number."""

    def change(records: Records) -> None:
        for record in records.all(attempt="resume", rank=1):
            if record["event"] in ("step.begin", "step.end", "digest"):
                record["step"] += by

    return recorded(change)


def _twice(records: Records) -> None:
    """Train step 8 of rank 0 again after its end."""
    step_records = [record for record in records.all(attempt="resume", rank=0, step=8) if record["event"] in _STEP]
    after = step_records[-1]
    for record in step_records:
        place = {key: value for key, value in record.items() if key not in ("mono", "wall")}
        after = records.insert(after, **place)


def _left_out(records: Records) -> None:
    records.drop([record for record in records.all(attempt="resume", rank=0, step=8) if record["event"] in _STEP])


_STEP = ("step.begin", "step.end", "digest")


def _stops_early(records: Records) -> None:
    records.drop([record for record in records.all(attempt="resume", rank=3) if record.get("step", 0) > 9])


def _stays_away(records: Records) -> None:
    records.drop_file("resume-rank_3")
    records.drop(records.all(attempt="resume", rank=3))


def _skips_between(records: Records) -> None:
    """Leave a step out in the faulted launch itself, before any fault."""
    records.drop([record for record in records.all(attempt="train", rank=0, step=2) if record["event"] in _STEP])


def _older_step(run_dir: Path) -> None:
    """Let every rank take the checkpoint of step 3, although that of step 6 exists."""

    def change(records: Records) -> None:
        for rank in range(4):
            _loads(records, rank, "sliced-1_6.ckpt", "sliced-1_3.ckpt")

    recorded(change)(run_dir)


def _from_the_start(records: Records) -> None:
    """Read nothing, and begin training anew: every step is there, from the first on."""
    for rank in range(4):
        rank_records = records.all(attempt="resume", rank=rank)
        records.drop(
            [record for record in rank_records if record["event"] in ("load.begin", "load.end", "checkpoint.read")]
        )
        records.first("train.begin", attempt="resume", rank=rank)["initial_step"] = 0
        begin = records.first("initial", attempt="resume", rank=rank)
        for record in sorted(_early(records, rank), key=lambda early: int(early["mono"])):
            place = {key: value for key, value in record.items() if key not in ("mono", "wall", "attempt", "pid")}
            begin = records.insert(begin, **place)


def _early(records: Records, rank: int) -> list[Record]:
    return [
        record
        for record in records.all(attempt="train", rank=rank)
        if record["event"] in _STEP and record["step"] <= SAVED
    ]


def _swap_groups(run_dir: Path) -> None:
    directory = run_dir / "job/checkpoints"
    shutil.copy2(directory / "rank_1/group_info.pb", directory / "rank_0/group_info.pb")


def _moments_not_recorded(records: Records) -> None:
    initial = records.first("initial", rank=3, attempt="resume")
    initial["parameters"] = {
        name: parameter for name, parameter in initial["parameters"].items() if not name.startswith("moments.")
    }


DEFECTS = (
    _defect(
        "step-counter-reset",
        "The step counter of rank 1 is 0 when the job is started again.",
        recorded(lambda records: records.first("train.begin", attempt="resume", rank=1).update(initial_step=0)),
        "the step counter is restored to 6",
        "rank 1's step counter was 0",
    ),
    _defect(
        "resumed-one-step-early",
        "Rank 1 goes on one step too early.",
        _shifted(-1),
        "training goes on at step 7",
        "rank 1 began with step 6",
    ),
    _defect(
        "resumed-one-step-late",
        "Rank 1 goes on one step too late.",
        _shifted(1),
        "training goes on at step 7",
        "rank 1 began with step 8",
    ),
    _defect(
        "resumed-from-the-start",
        "No rank reads the checkpoint, and training begins from the start.",
        recorded(_from_the_start),
        "training goes on at step 7, after the saved step 6",
        "rank 0 began with step 1",
    ),
    _defect(
        "step-trained-twice",
        "Rank 0 trains step 8 twice after the resume.",
        recorded(_twice),
        "rank 0 trained step 8 twice in attempt resume",
    ),
    _defect(
        "step-skipped",
        "Rank 0 leaves step 8 out after the resume.",
        recorded(_left_out),
        "rank 0 skipped step 8 in attempt resume",
    ),
    _defect(
        "step-skipped-before-the-fault",
        "Rank 0 leaves step 2 out before the fault.",
        recorded(_skips_between),
        "rank 0 skipped step 2 in attempt train",
    ),
    _defect(
        "resume-stops-early",
        "Rank 3 ends after step 9.",
        recorded(_stops_early),
        "every rank trains to step 10",
        "rank 3 stopped after step 9",
    ),
    _defect(
        "rank-does-not-come-back",
        "Rank 3 is not there when the job is started again.",
        recorded(_stays_away),
        "all 4 ranks are there again",
        "rank 3 did not come back",
    ),
    _defect(
        "load-broken-off",
        "Rank 2 begins to load, and trains before the load has ended.",
        recorded(lambda records: records.drop(records.all("load.end", attempt="resume", rank=2))),
        "a load of rank 2 did not",
    ),
    _defect(
        "periodic-checkpoint-chosen",
        "Rank 3 goes on from the periodic checkpoint of step 4 instead of the end-of-life checkpoint.",
        recorded(_loads_periodic),
        "rank 3 loaded job/checkpoints/rank_3/sliced-1_4.ckpt",
        "not an end-of-life checkpoint",
    ),
    _defect(
        "checkpoint-of-other-group-chosen",
        "Rank 3 loads the file of rank 0, which is of another replica group.",
        recorded(lambda records: _loads(records, 3, "rank_1/ttp_rank_1", "rank_0/ttp_rank_0")),
        "rank 3 loaded rank 0's file, of another replica group",
    ),
    _defect(
        "checkpoint-of-other-run-chosen",
        "Rank 3 loads the checkpoint that an earlier run left elsewhere.",
        recorded(_loads_of_yesterday),
        "rank 3 loaded a file of another run",
    ),
    _defect(
        "state-of-wrong-group",
        "Rank 3 goes on with the slices of rank 0.",
        _state_of(0, SAVED),
        "goes on with the weights and optimizer state of the file that it loaded",
        "parameters of rank 3 are not the file's: layer1.weight.param",
    ),
    _defect(
        "state-of-older-step",
        "Rank 3 goes on with its own state of step 4.",
        _state_of(3, 4),
        "parameters of rank 3 are not the file's: global_step",
    ),
    _defect(
        "moments-reset-on-resume",
        "Rank 3 goes on with moments of zero, though the file has them.",
        _initial_of("moments."),
        "parameters of rank 3 are not the file's: moments.layer1.weight.param",
    ),
    _defect(
        "global-step-not-restored",
        "The optimizer of rank 3 counts its steps from 0 again.",
        _initial_of("global_step"),
        "1 of",
        "parameters of rank 3 are not the file's: global_step",
    ),
    _defect(
        "older-periodic-checkpoint-chosen",
        "All ranks go on from step 3, though every replica group has a file of step 6.",
        _older_step,
        "training goes on at step 7",
        "step 3 was saved, so the next is step 4",
        base="slices",
    ),
    _defect(
        "lost-slices-from-wrong-group",
        "Rank 2, whose files are lost, takes the slices of rank 1, which is no replica of it.",
        recorded(lambda records: _loads(records, 2, "/rank_0/", "/rank_1/")),
        "rank 2 loaded rank 1's file, of another replica group",
        base="slices",
    ),
    _defect(
        "periodic-checkpoint-bit-flipped-but-loads",
        "One bit is flipped in the file from which rank 1 goes on; the file loads.",
        stored("rank_1/sliced-1_6.ckpt", lambda file: file.flip_bit("layer2.weight.param", 4_003)),
        "1 of",
        "parameters of rank 1 are not the file's: layer2.weight.param",
        base="slices",
    ),
    _defect(
        "lost-files-back",
        "The files that the fault took from rank 2 are there again, and rank 2 has read them.",
        chain(
            copied("lost/rank_2/sliced-1_6.ckpt", "job/checkpoints/rank_2/sliced-1_6.ckpt"),
            recorded(lambda records: _loads(records, 2, "/rank_0/", "/rank_2/")),
        ),
        "rank 2 loaded rank 2's file, the plan shows that of rank 0",
        base="slices",
    ),
    _defect(
        "group-info-of-other-group",
        "group_info.pb of rank 0 names the ranks of another replica group.",
        _swap_groups,
        "the file of rank 0 names [1, 3], its replica group is [0, 2]",
        base="slices",
        check="consistency",
    ),
    _defect(
        "group-info-damaged",
        "group_info.pb of rank 3 was cut off.",
        rewritten("job/checkpoints/rank_3/group_info.pb", lambda content: content[:-1]),
        "the file of rank 3",
        base="slices",
        check="consistency",
    ),
    Defect(
        "moments-not-recorded-on-resume",
        "The moments with which rank 3 goes on are not recorded.",
        "files",
        "ttp",
        "resume",
        ("rank 3 has recorded no digests of moments.",),
        "unknown",
        recorded(_moments_not_recorded),
    ),
)
