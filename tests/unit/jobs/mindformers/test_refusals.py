"""What MindFormers and MindSpore forbid is refused before the start, at its line; the allowed neighbour passes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chaos.jobs.mindformers.job import KIND
from chaos.jobs.mindformers.reader import examine

if TYPE_CHECKING:
    from tests.unit.jobs.mindformers.conftest import Room

Changes = Sequence[tuple[str, str]]
PROTECTION = "protection: [TTP]"
MONITOR = "  - type: CheckpointMonitor\n    prefix: tiny\n    save_checkpoint_steps: 4\n"
WATCH = "monitor_config:\n  monitor_on: True\n  check_for_global_norm: True\n  global_norm_spike_threshold: 44.0\n"
RANKS = "  data_parallel: 4\n"


def apply(room: Room, changes: Changes) -> Room:
    """Changes of the configuration, or of the scenario where the text stands there."""
    for old, new in changes:
        (room.change if old in room.configuration else room.change_scenario)(old, new)
    return room


CASES: list[tuple[str, str, Changes, Changes]] = [
    # place, words, what is forbidden, the neighbour that is not
    (
        "job.yaml:12:3: job.sink_size, which job.yaml decides (runner_config.sink_size)",
        "the sink size is 2. TTP needs sink size 1 (MindSpore Transformers, Training High Availability",
        [("sink_size: 1", "sink_size: 2")],
        [("sink_size: 1", "sink_size: 2"), (PROTECTION, "protection: []"), ("faults:", "expect: {}\nfaults:")],
    ),
    (
        "job.yaml:12:3",
        "sink_size -1 sinks a whole epoch at once",
        [("sink_size: 1", "sink_size: -1")],
        [("sink_size: 1", "sink_size: 1")],
    ),
    (
        "job.yaml:12:3",
        "TTP (scenario.yaml:7) needs sink_size 1, also with sink_mode False: MindFormers ends with 'sink_size should "
        "be 1, got 4'",
        [("sink_mode: True\n  sink_size: 1", "sink_mode: False\n  sink_size: 4")],
        [("sink_mode: True\n  sink_size: 1", "sink_mode: False\n  sink_size: 4"), (PROTECTION, "protection: []")],
    ),
    (
        "job.yaml:12:3",
        "'sink_size should be 1, got -1'",
        [("sink_mode: True\n  sink_size: 1", "sink_mode: False\n  sink_size: -1")],
        [("sink_mode: True\n  sink_size: 1", "sink_mode: False\n  sink_size: 1")],
    ),
    (
        "job.yaml:17:1",
        "CheckpointMonitor is not among the callbacks, and TTP is on (scenario.yaml:7): MindFormers then ends with "
        "'You must set CheckpointMonitor callback for TFT training!'",
        [(MONITOR, "")],
        [(MONITOR, ""), (PROTECTION, "protection: []")],
    ),
    (
        "job.yaml:23:16",
        "UCE (scenario.yaml:7) is not there with jit level O2: MindSpore ends with 'TFT is not supported when using",
        [("  device_target", "  jit_config: {jit_level: O2}\n  device_target"), (PROTECTION, "protection: [UCE]")],
        [("  device_target", "  jit_config: {jit_level: O2}\n  device_target")],  # TTP alone is not refused
    ),
    (
        "job.yaml:23:3",
        "UCE (scenario.yaml:7) is not there with jit level O2",
        [("  device_target", "  jit_level: O2\n  device_target"), (PROTECTION, "protection: [UCE]")],
        [("  device_target", "  jit_level: O1\n  device_target"), (PROTECTION, "protection: [UCE]")],
    ),
    (
        "job.yaml:23:3: job.device, which job.yaml decides (context.device_target)",
        "on a CPU MindSpore has no fault tolerance (MindIO adapter only support on Ascend device but got device CPU!)",
        [("device_target: Ascend", "device_target: CPU")],
        [("device_target: Ascend", "device_target: CPU"), (PROTECTION, "protection: []")],
    ),
    (
        "job.yaml:23:3",
        "TTP (scenario.yaml:7) works in graph mode only",
        [("  device_target", "  mode: 1\n  device_target")],
        [("  device_target", "  mode: 0\n  device_target")],
    ),
    (
        "job.yaml:4:1",
        "run_mode 'predict' trains nothing",
        [("run_mode: train", "run_mode: predict")],
        [("run_mode: train", "run_mode: finetune")],
    ),
    ("job.yaml", "run_mode is missing", [("run_mode: train\n", "")], []),
    (
        "job.yaml:4:1",
        "only_save_strategy ends the job before its first step",
        [("run_mode", "only_save_strategy: True\nrun_mode")],
        [("run_mode", "only_save_strategy: False\nrun_mode")],
    ),
    (
        "job.yaml",
        "TRE is on (scenario.yaml:7), but nothing checks the global norm, so it never acts: monitor_config.monitor_on",
        [(PROTECTION, "protection: [TTP, TRE]")],
        [(PROTECTION, "protection: [TTP, TRE]"), ("callbacks:", f"{WATCH}callbacks:")],
    ),
    (
        "job.yaml:18:3",
        "monitor_config.monitor_on is not true",
        [
            (PROTECTION, "protection: [TTP, TRE]"),
            ("callbacks:", f"{WATCH}callbacks:"),
            ("monitor_on: True", "monitor_on: False"),
        ],
        [],
    ),
    (
        "job.yaml:19:3",
        "check_for_global_norm is not true, and health_checkpoint (2.1) has no threshold of its own",
        [
            (PROTECTION, "protection: [TTP, TRE]"),
            ("callbacks:", f"{WATCH}callbacks:"),
            ("check_for_global_norm: True", "check_for_global_norm: False"),
        ],
        [
            (PROTECTION, "protection: [TTP, TRE]"),
            ("callbacks:", f"{WATCH}callbacks:"),
            ("check_for_global_norm: True", "health_checkpoint: {global_norm_spike_threshold: 9.5}"),
        ],
    ),
    (
        "job.yaml:21:1: job.tre.skip_data, which job.yaml decides (use_skip_data_by_global_norm)",
        "data skipping excludes TRE. MindFormers refuses both together: The check_for_global_norm and use_skip_data",
        [
            (PROTECTION, "protection: [TTP, TRE]"),
            ("callbacks:", f"{WATCH}use_skip_data_by_global_norm: True\ncallbacks:"),
        ],
        [("callbacks:", "use_skip_data_by_global_norm: True\ncallbacks:")],
    ),
    (
        "job.yaml:20:3: job.tre, which job.yaml decides (monitor_config.global_norm_spike_threshold)",
        "but TRE is not in job.protection: the error that the watch throws would only end the job",
        [("callbacks:", f"{WATCH}callbacks:")],
        [("callbacks:", f"{WATCH}callbacks:"), (PROTECTION, "protection: [TTP, TRE]")],
    ),
    (
        "job.yaml:4:1",
        "the job resumes from the checkpoint 'ckpt' (job.yaml:5), but this version plans steps from 1 only",
        [("run_mode", "resume_training: True\nload_checkpoint: ckpt\nrun_mode")],
        [("run_mode", "resume_training: True\nload_checkpoint: ''\nrun_mode")],  # 2.1 then begins anew
    ),
    (
        "job.yaml:4:1",
        "auto_trans_ckpt is on and load_checkpoint is empty: MindFormers then goes on from",
        [("run_mode", "auto_trans_ckpt: True\nload_checkpoint: ''\nrun_mode")],
        [("run_mode", "auto_trans_ckpt: True\nload_checkpoint: ckpt\nrun_mode")],
    ),
    (
        "job.yaml:4:1",
        "resume_training is on and load_checkpoint is empty",
        [("run_mode", "resume_training: tiny_rank_0-1_4.ckpt\nrun_mode")],
        [("run_mode", "resume_training: False\nrun_mode")],
    ),
    (
        "job.yaml:21:5",
        "save_optimizer leaves the optimizer's state out of the checkpoints",
        [("run_mode", "use_legacy_format: False\nrun_mode"), ("    prefix", "    save_optimizer: False\n    prefix")],
        [("    prefix", "    save_optimizer: False\n    prefix")],  # the legacy layout passes it over
    ),
    (
        "job.yaml:4:14",
        "no_save_optim leaves the optimizer's state out of the checkpoints",
        [("run_mode", "checkpoint: {no_save_optim: True}\nrun_mode")],
        [
            ("run_mode", "checkpoint: {no_save_optim: False}\nrun_mode"),
            ("    prefix", "    save_optimizer: False\n    prefix"),
        ],
    ),
    (
        "job.yaml:4:31",
        "the job resumes from the checkpoint 'ckpt' (job.yaml:4), but this version plans steps from 1 only",
        [("run_mode", "checkpoint: {load_path: ckpt, no_load_optim: False}\nrun_mode")],
        [("run_mode", "checkpoint: {load_path: ckpt}\nrun_mode")],  # the weights alone
    ),
    (
        "job.yaml:4:1",
        "the job resumes from the checkpoint 'ckpt' (job.yaml:5)",
        [("run_mode", "resume_training: True\ncheckpoint: {load_path: ckpt, no_load_optim: null}\nrun_mode")],
        [("run_mode", "resume_training: True\ncheckpoint: {load_path: ckpt, no_load_optim: True}\nrun_mode")],
    ),
    (
        "job.yaml:5:14",
        "the job resumes from the checkpoint 'ckpt' (job.yaml:4)",
        [("run_mode", "load_checkpoint: ckpt\ncheckpoint: {no_load_optim: False}\nrun_mode")],
        [("run_mode", "load_checkpoint: ckpt\ncheckpoint: {no_load_optim: False, load_path: ''}\nrun_mode")],
    ),
    (
        "job.yaml",
        "TRE (scenario.yaml:7) goes back to a checkpoint of load_ckpt_format, which is ckpt, but the job saves",
        [
            (PROTECTION, "protection: [TTP, TRE]"),
            ("    prefix", "    checkpoint_format: safetensors\n    prefix"),
            ("callbacks:", f"{WATCH}callbacks:"),
        ],
        [
            (PROTECTION, "protection: [TTP, TRE]"),
            ("    prefix", "    checkpoint_format: safetensors\n    prefix"),
            ("callbacks:", f"{WATCH}load_ckpt_format: safetensors\ncallbacks:"),
        ],
    ),
    (
        "job.yaml:20:5",
        "checkpoints go to '/data/ckpt', which two runs would share",
        [("    prefix", "    directory: /data/ckpt\n    prefix")],
        [("    prefix", "    directory: null\n    prefix")],
    ),
    (
        "job.yaml:20:5",
        "The prefix for saving checkpoint is not allowed to contain 'rank'.",
        [("prefix: tiny", "prefix: franky")],
        [("prefix: tiny", "prefix: fred")],
    ),
    (
        "job.yaml:20:5",
        "The format of checkpoint is ckpt which is not support remove redundancy.",
        [("    prefix", "    remove_redundancy: True\n    prefix")],
        [("    prefix", "    remove_redundancy: True\n    checkpoint_format: safetensors\n    prefix")],
    ),
    (
        "job.yaml:21:5",
        "The format of checkpoint is ckpt which is not support remove redundancy.",
        [("run_mode", "use_legacy_format: False\nrun_mode"), ("    prefix", "    remove_redundancy: True\n    prefix")],
        [
            ("run_mode", "use_legacy_format: False\nuse_legacy: False\nrun_mode"),
            ("    prefix", "    remove_redundancy: True\n    prefix"),
        ],
    ),
    (
        "job.yaml:4:14",
        "The format of checkpoint is ckpt which is not support remove redundancy.",
        [("run_mode", "checkpoint: {save_remove_redundancy: True}\nrun_mode")],
        [
            ("run_mode", "checkpoint: {save_remove_redundancy: False}\nrun_mode"),
            ("    prefix", "    remove_redundancy: True\n    prefix"),
        ],
    ),
    (
        "job.yaml:14:3",
        "Dense weights have 4 copies, which is enough; with expert_parallel 2 it is left open which ranks hold the "
        "same experts: whole experts (moev3.py) have 2 copies: [0, 2] hold the same ones; sliced",
        [(RANKS, f"  expert_parallel: 2\n{RANKS}")],
        [(RANKS, f"  expert_parallel: 1\n{RANKS}")],
    ),
    (
        "job.yaml:14:3",
        "sliced experts (moe.py) have 1 copy, which leaves no replica; the weights of a model without experts have 4",
        [(RANKS, f"  expert_parallel: 4\n{RANKS}")],
        [(RANKS, f"  expert_parallel: 1\n{RANKS}")],
    ),
    (
        "job.yaml:14:3: cluster.parallel.data_parallel, which job.yaml decides (parallel_config.data_parallel)",
        "no rank has a replica: data_parallel is 1. TTP needs replicas",
        [("data_parallel: 4", "data_parallel: 1"), ("model_parallel: 1", "model_parallel: 4")],
        [("data_parallel: 4", "data_parallel: 2"), ("model_parallel: 1", "model_parallel: 2")],
    ),
    (
        "job.yaml",
        "the optimizer shards leave one copy: data_parallel 4, optimizer_weight_shard_size 4",
        [("parallel_config:", "parallel: {enable_parallel_optimizer: True}\nparallel_config:")],
        [
            (
                "parallel_config:",
                "parallel:\n  enable_parallel_optimizer: True\n  parallel_optimizer_config: "
                "{optimizer_weight_shard_size: 2}\nparallel_config:",
            )
        ],
    ),
    (
        "job.yaml:4:1",
        "there is no key 'use_paralell': MindFormers ignores it",
        [("run_mode", "use_paralell: False\nrun_mode")],
        [("run_mode", "use_past: False\nrun_mode")],
    ),
    (
        "job.yaml:14:3",
        "MindFormers ends with 'The config 'parallel_config' gets an unexpected key: data_paralel' (1.5 to 2.1)",
        [("data_parallel: 4", "data_paralel: 4"), ("rank: 1", "rank: 0")],
        [("data_parallel: 4", "data_parallel: 4\n  micro_batch_num: 2")],
    ),
    (
        "job.yaml:14:3",
        # A character that turns the direction of writing is shown by its number.
        "'The config 'parallel_config' gets an unexpected key: \\u202edata_parallel' (1.5 to 2.1)",
        [("data_parallel: 4", "\u202edata_parallel: 4"), ("rank: 1", "rank: 0")],
        [("data_parallel: 4", "data_parallel: 4\n  micro_batch_num: 2")],
    ),
    (
        "scenario.yaml:8:26",
        "in which there is no record of an earlier run",
        [
            (PROTECTION, "protection: [TTP, TRE]\n  tre: {threshold: 44.0, recorded: [5]}"),
            ("callbacks:", f"{WATCH}callbacks:"),
        ],
        [(PROTECTION, "protection: [TTP, TRE]\n  tre: {threshold: 44.0}"), ("callbacks:", f"{WATCH}callbacks:")],
    ),
    (
        "scenario.yaml:8:15",
        "argument '--use_parallel' changes the configuration",
        [(PROTECTION, f"{PROTECTION}\n  arguments: [--use_parallel=True]")],
        [(PROTECTION, f"{PROTECTION}\n  checkout: there\n  arguments: [--register_path=here]")],
    ),
    (
        "scenario.yaml:8:15",
        "argument '--register_path': without job.checkout a program that takes no arguments is started",
        [(PROTECTION, f"{PROTECTION}\n  arguments: [--register_path, here]")],
        [(PROTECTION, f"{PROTECTION}\n  checkout: there\n  arguments: [--register_path, here]")],
    ),
    (
        "scenario.yaml:10:15",
        "--register_path replaces the directory from which job.loading: callback loads the agent",
        [(PROTECTION, f"{PROTECTION}\n  checkout: there\n  loading: callback\n  arguments: [--register_path=here]")],
        [(PROTECTION, f"{PROTECTION}\n  checkout: there\n  loading: callback\n  arguments: [--device_id=0]")],
    ),
    (
        "scenario.yaml:9:17",
        "REGISTER_PATH replaces the directory from which job.loading: callback loads the agent",
        [(PROTECTION, f"{PROTECTION}\n  loading: callback\n  environment: {{REGISTER_PATH: here}}")],
        [(PROTECTION, f"{PROTECTION}\n  loading: path\n  environment: {{REGISTER_PATH: here}}")],
    ),
    (
        "scenario.yaml:11:24",
        "a job of kind 'mindformers' cannot observe phase checkpoint.write",
        [
            ("step: 6, phase: step.end", "step: 8, phase: checkpoint.write"),
            ("    prefix: tiny\n", "    prefix: tiny\n    checkpoint_format: safetensors\n"),
        ],
        [("step: 6, phase: step.end", "step: 8, phase: checkpoint.write")],
    ),
    (
        "job.yaml:8:1",
        "training belongs to the PyNative trainer of MindFormers 2.x, whose loop does not go through Model.train",
        [
            (
                "runner_config:\n  epochs: 2\n  batch_size: 1\n  sink_mode: True\n  sink_size: 1\n",
                "training: {steps: 5}\n",
            )
        ],
        [],
    ),
    (
        "job.yaml:19:3",
        "mode belongs to the PyNative trainer of MindFormers 2.x",
        [
            ("runner_config:\n  epochs: 2\n  batch_size: 1\n  sink_mode: True\n  sink_size: 1\n", ""),
            ("  device_target: Ascend", "  device_target: Ascend\n  mode: 1"),
        ],
        [],
    ),
]


@pytest.mark.parametrize(("place", "words", "forbidden", "neighbour"), CASES, ids=[case[1][:40] for case in CASES])
def test_what_is_forbidden_is_refused_at_its_line_and_its_neighbour_passes(
    room: Room, tmp_path: Path, place: str, words: str, forbidden: Changes, neighbour: Changes
) -> None:
    before = room.configuration, room.scenario
    (tmp_path / "there").mkdir()  # the checkout that some of them name
    message = apply(room, forbidden).refused()
    assert words in message
    assert any(line.startswith(place) and words in line for line in message.splitlines()), message
    room.configuration, room.scenario = before
    apply(room, neighbour).plan()


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [("run_mode: train", "run_mode: eval", "run_mode"), ("data_parallel: 4", "data_parallel: 1", "data_parallel")],
)
def test_a_problem_quotes_the_line_of_the_configuration(room: Room, old: str, new: str, key: str) -> None:
    message = room.change(old, new).change_scenario("rank: 1", "rank: 0").refused()
    indent = "    " if key == "run_mode" else "      "
    assert f"\n{indent}{new}\n{indent}{'^' * len(key)}\n" in message


def test_a_problem_that_an_override_makes_quotes_the_scenario(room: Room) -> None:
    room.change_scenario("steps: 12", "steps: 12\n  overrides:\n    context.mode: 1")
    lines = room.refused().splitlines()
    assert lines[0].startswith("scenario.yaml:8:5: TTP (scenario.yaml:9) works in graph mode only")
    assert lines[1] == "        context.mode: 1"


def test_a_rehearsal_takes_what_only_a_genuine_job_lacks(room: Room) -> None:
    room.change("  device_target", "  mode: 1\n  device_target")
    cell = room.cell()
    assert examine(cell, Path("scenario.yaml"), KIND.traits).problems
    assert not examine(cell, Path("scenario.yaml"), KIND.traits, rehearsed=True).problems


@pytest.mark.parametrize(
    ("version", "mechanism", "known"), [("1.3.2", "TTP", False), ("1.5.0", "TTP", True), ("1.5.0", "HCCE", False)]
)
def test_a_version_that_knows_no_such_mechanism_is_named(
    room: Room, tmp_path: Path, version: str, mechanism: str, known: bool
) -> None:
    package = tmp_path / "checkout" / "mindformers"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f'__version__ = "{version}"\nraise SystemExit("never imported")\n')
    room.change_scenario(PROTECTION, f"protection: [TTP, {mechanism}]" if mechanism != "TTP" else PROTECTION)
    room.change_scenario("steps: 12", "steps: 12\n  checkout: checkout")
    if known:
        room.plan()
    else:
        assert f"MindFormers {version[:3]} does nothing for {mechanism} (scenario.yaml:8)" in room.refused()


def test_how_many_steps_are_trained_must_be_said(room: Room) -> None:
    room.change_scenario("  steps: 12\n", "")
    message = room.refused()
    assert message.startswith(
        "scenario.yaml:3:1: how many steps the job trains is not in its configuration: job.yaml:9: "
    )
    assert "write job.steps" in message


LOSE = """\
  - kind: kill
    id: power
    target: {ranks: [0, 1, 2, 3]}
    trigger: {step: 6, phase: step.begin}
  - kind: lose-checkpoint
    target: {rank: 1}
    trigger: {after: power}
"""


def test_a_ranks_files_are_lost_in_the_legacy_layout_only(room: Room) -> None:
    head, _, _ = room.scenario.partition("  - kind: kill")
    room.scenario = f"{head}{LOSE}".replace(PROTECTION, "protection: []")
    plan = room.plan()
    assert plan.resume.restore is not None and plan.resume.restore.step is None
    room.configuration += "use_legacy_format: False\n"
    assert "saves the files of all ranks in one directory for each step" in room.refused()


RECORDS = """\
  - kind: kill
    id: power
    target: {ranks: [0, 1, 2, 3]}
    trigger: {step: 10, phase: step.begin}
  - kind: damage-record
    target: {rank: 0}
    trigger: {after: power}
  - kind: damage-record
    target: {rank: 1}
    parameters: {how: stale}
    trigger: {after: power}
"""


@pytest.mark.parametrize(("version", "step"), [("1.7.0", 8), ("1.8.0", 4), ("2.1.0", 4)])
def test_what_a_lost_record_means_is_told_by_the_documents_of_the_jobs_version(
    room: Room, tmp_path: Path, version: str, step: int
) -> None:
    package = tmp_path / "checkout" / "mindformers"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f'__version__ = "{version}"\n')
    head, _, _ = room.scenario.partition("  - kind: kill")
    room.scenario = f"{head}{RECORDS}".replace(PROTECTION, "protection: []")
    room.change_scenario("steps: 12", "steps: 12\n  checkout: checkout")
    plan = room.plan()
    assert plan.resume.restore is not None and plan.resume.restore.step == step


def test_an_empty_checkpoint_is_a_fresh_start_from_2_1_on_only(room: Room, tmp_path: Path) -> None:
    package = tmp_path / "checkout" / "mindformers"
    package.mkdir(parents=True)
    room.change("run_mode", "resume_training: True\nload_checkpoint: ''\nrun_mode")
    room.change_scenario("steps: 12", "steps: 12\n  checkout: checkout")
    (package / "__init__.py").write_text('__version__ = "2.1.0"\n')
    room.plan()
    (package / "__init__.py").write_text('__version__ = "1.8.0"\n')
    assert "resume_training is on and load_checkpoint is empty" in room.refused()


@pytest.mark.parametrize(("kind", "refused"), [("remove-checkpoint", True), ("kill", False)])
def test_damage_that_needs_an_older_save_is_refused_where_one_is_kept(room: Room, kind: str, refused: bool) -> None:
    head, _, _ = room.scenario.partition("  - kind: kill")
    room.scenario = f"{head}{LOSE}".replace(PROTECTION, "protection: []").replace("lose-checkpoint", kind)
    if not refused:
        room.scenario = room.scenario.rpartition("  - kind")[0]
    room.change("    prefix", "    keep_checkpoint_max: 1\n    prefix")
    room.scenario = room.scenario.replace("step: 6", "step: 10")
    if not refused:
        room.plan()
        return
    assert "needs a checkpoint before the newest one, and this job keeps 1" in room.refused()
    room.change("keep_checkpoint_max: 1", "keep_checkpoint_max: 2")
    assert room.plan().resume.resume_step == 5


@pytest.mark.parametrize(
    ("written", "told", "fix"),
    [("1", "int", "True"), ("0", "int", "False"), ("null", "NoneType", "True"), ("'yes'", "str", "True")],
)
def test_sinking_that_is_no_bool_is_refused_as_mindspore_refuses_it(
    room: Room, written: str, told: str, fix: str
) -> None:
    room.change("sink_mode: True\n", f"sink_mode: {written}\n")
    refused = room.refused()
    assert f"The input value must be a bool, but got {told}." in refused
    assert f"set sink_mode: {fix}" in refused
