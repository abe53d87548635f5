"""What a configuration decides: topology, saving, watch; in the layouts and versions that there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.jobs.mindformers.conftest import Room

SIZES = "  data_parallel: 4\n  model_parallel: 1\n  pipeline_stage: 1\n"

NINES = "9" * 4000
"""Digits of a number that Python still reads, but neither as a float nor squared as text."""


def test_parallel_sizes_give_ranks_and_replica_groups(room: Room) -> None:
    room.change(SIZES, "  data_parallel: 2\n  model_parallel: 2\n  pipeline_stage: 2\n")
    plan = room.plan()
    assert plan.layout.ranks == 8
    assert plan.layout.replica_groups == ((0, 2), (1, 3), (4, 6), (5, 7))
    assert plan.explanation.configured["cluster.ranks"] == "job.yaml:13: parallel_config: 8 ranks"


def test_ranks_that_share_a_sequence_are_replicas(room: Room) -> None:
    room.change(SIZES, "  data_parallel: 2\n  context_parallel: 2\n  model_parallel: 2\n")
    plan = room.plan()
    assert plan.layout.replica_groups == ((0, 2, 4, 6), (1, 3, 5, 7))
    assert "times context_parallel 2" in plan.explanation.configured["cluster.parallel.data_parallel"]


def test_optimizer_shards_split_replica_groups(room: Room) -> None:
    shards = (
        "parallel:\n  enable_parallel_optimizer: True\n  parallel_optimizer_config: {optimizer_weight_shard_size: 2}\n"
    )
    room.change("parallel_config:", f"{shards}parallel_config:")
    assert room.plan().layout.replica_groups == ((0, 2), (1, 3))


@pytest.mark.parametrize("size", ["-1", "3", "8"])
def test_shards_that_do_not_divide_the_ranks_take_no_effect(room: Room, size: str) -> None:
    shards = f"  parallel_optimizer_config: {{optimizer_weight_shard_size: {size}}}\n"
    room.change("parallel_config:", f"parallel:\n  enable_parallel_optimizer: True\n{shards}parallel_config:")
    room.change_scenario("[TTP]", "[]")
    plan = room.plan()
    assert len(plan.layout.replica_groups) == 4
    answer = plan.explanation.configured["cluster.parallel.optimizer_weight_shard_size"]
    assert answer.endswith(f"optimizer_weight_shard_size: {size} (all 4 data-parallel ranks)")


@pytest.mark.parametrize("change", ["use_parallel: False", ""])
def test_without_parallelism_there_is_one_rank(room: Room, change: str) -> None:
    room.change("use_parallel: True", change or "seed_everything: 1")
    room.change_scenario("protection: [TTP]", "protection: []").change_scenario("rank: 1", "rank: 0")
    assert room.plan().layout.ranks == 1


@pytest.mark.parametrize("mode", ["0", "DATA_PARALLEL"])
def test_in_pure_data_parallelism_the_scenario_may_say_how_many_ranks_there_are(room: Room, mode: str) -> None:
    room.change("parallel_config:", f"parallel: {{parallel_mode: {mode}}}\nparallel_config:")
    assert room.plan().layout.replica_groups == ((0, 1, 2, 3),)
    room.change_scenario("name: example", "name: example\ncluster: {ranks: 2}")
    assert room.plan().layout.replica_groups == ((0, 1),)


def test_ranks_of_the_scenario_must_be_those_of_the_configuration(room: Room) -> None:
    room.change_scenario("name: example", "name: example\ncluster: {ranks: 8}")
    assert "cluster.ranks is 8 here, but job.yaml:13: parallel_config: 4 ranks" in room.refused()
    room.change_scenario("ranks: 8", "ranks: 4")
    assert room.plan().layout.ranks == 4


def test_checkpoints_of_the_legacy_layout_are_named_by_the_callback(room: Room) -> None:
    plan = room.plan()
    assert plan.checkpoint is not None
    assert set(plan.checkpoint.files.values()) == {"checkpoint/rank_0/tiny_rank_0-6_1.ckpt"}
    assert (
        plan.explanation.configured["checkpoint layout"] == "job.yaml leaves use_legacy_format out, which means legacy"
    )
    assert plan.explanation.configured["checkpoint prefix"] == "job.yaml:20: prefix: tiny"
    room.change("    prefix: tiny\n    save_checkpoint_steps: 4\n", "")
    plan = room.plan()
    assert plan.training.checkpoint_interval == 1
    assert (
        plan.explanation.configured["checkpoint prefix"]
        == "job.yaml leaves CheckpointMonitor.prefix out, which means CKP"
    )


def test_the_new_layout_has_a_section_of_its_own_that_counts_more(room: Room) -> None:
    room.change("callbacks:", "checkpoint:\n  save_interleaved_steps: 3\n  prefix: other\n  save_max: 2\ncallbacks:")
    plan = room.plan()
    assert plan.training.checkpoint_interval == 3
    assert plan.explanation.configured["checkpoint layout"] == "job.yaml:17: checkpoint: new"
    assert plan.explanation.configured["job.checkpoint_interval"] == "job.yaml:18: save_interleaved_steps: 3"
    assert plan.explanation.configured["checkpoint prefix"] == "job.yaml:19: prefix: other"
    assert plan.explanation.configured["checkpoints kept"] == "job.yaml:20: save_max: 2"


@pytest.mark.parametrize(
    ("version", "template", "place", "told"),
    [
        ("1.7.0", None, "callback", "job.yaml:20: use_legacy_format: False (new)"),
        ("1.7.0", None, "top", "job.yaml:4: use_legacy_format: False (passed over)"),
        ("1.8.0", None, "top", "job.yaml:4: use_legacy_format: False (new)"),
        (
            "1.8.0",
            None,
            "callback",
            "job.yaml:20: use_legacy_format: False (passed over)",
        ),
        ("1.8.0", None, "section", "job.yaml:4: checkpoint: a mapping (passed over)"),
        ("1.6.0", None, "top", "job.yaml:4: use_legacy_format: False (passed over)"),
        ("2.1.0", None, "top", "job.yaml:4: use_legacy_format: False (new)"),
        (
            "2.1.0",
            None,
            "callback",
            "job.yaml:20: use_legacy_format: False (passed over)",
        ),
        ("2.1.0", None, "section", "job.yaml:4: checkpoint: new"),
        # Between two releases the sources have the older number; their keys tell.
        ("1.7.0", "    use_legacy_format = True\n", "top", "job.yaml:4: use_legacy_format: False (new)"),
        ("1.7.0", "    ckpt_use_legacy_format = True\n", "callback", "job.yaml:20: use_legacy_format: False (new)"),
    ],
)
def test_what_chooses_the_layout_depends_on_the_version(
    room: Room, version: str, template: str | None, place: str, told: str
) -> None:
    room.checkout(version, template)
    if place == "callback":
        room.change("    prefix", "    use_legacy_format: False\n    prefix")
    elif place == "top":
        room.change("run_mode", "use_legacy_format: False\nrun_mode")
    else:
        room.change("run_mode", "checkpoint: {save_interleaved_steps: 3, load_path: ''}\nrun_mode")
    plan = room.plan()
    words = f"(legacy: MindFormers {version[:3]} does not go by it)"
    assert plan.explanation.configured["checkpoint layout"] == told.replace("(passed over)", words)
    assert plan.training.checkpoint_interval == (3 if told.endswith("checkpoint: new") else 4)


def test_the_new_layout_takes_from_the_callback_what_its_section_lacks(room: Room) -> None:
    room.change("run_mode", "use_legacy_format: False\nrun_mode")
    plan = room.plan()
    assert plan.training.checkpoint_interval == 4
    assert plan.explanation.configured["checkpoint layout"] == "job.yaml:4: use_legacy_format: False (new)"


def test_what_is_not_there_is_not_told(room: Room) -> None:
    assert not {"jit level", "weights from"} & room.plan().explanation.configured.keys()
    room.change("run_mode", "load_checkpoint: base.ckpt\nrun_mode")
    room.change("  device_target", "  jit_config: {jit_level: O1}\n  device_target")
    answer = room.plan().explanation.configured
    assert answer["weights from"] == "job.yaml:4: load_checkpoint: base.ckpt"
    assert answer["jit level"] == "job.yaml:24: context.jit_config.jit_level: O1"


def test_saving_in_the_background_is_read(room: Room) -> None:
    room.change("    prefix", "    async_save: True\n    prefix")
    assert room.plan().fault_tolerance.recovery_options.asynchronous_saving
    assert room.plan().explanation.configured["job.storage.asynchronous_saving"] == "job.yaml:20: async_save: True"


def test_the_watch_has_the_threshold_of_the_configuration(room: Room) -> None:
    watch = "monitor_config:\n  monitor_on: True\n  check_for_global_norm: True\n"
    room.change("callbacks:", f"{watch}callbacks:").change_scenario("[TTP]", "[TTP, TRE]")
    plan = room.plan()
    assert plan.fault_tolerance.watch is not None and plan.fault_tolerance.watch.threshold == 3.0
    room.change("  check_for", "  global_norm_spike_threshold: 44.5\n  check_for")
    plan = room.plan()
    assert plan.fault_tolerance.watch is not None and plan.fault_tolerance.watch.threshold == 44.5
    room.change("  check_for", "  health_checkpoint: {global_norm_spike_threshold: 9.5}\n  check_for")
    plan = room.plan()
    assert plan.fault_tolerance.watch is not None and plan.fault_tolerance.watch.threshold == 9.5


def test_a_threshold_of_2_1_is_none_before(room: Room) -> None:
    watch = "monitor_config:\n  monitor_on: True\n  health_checkpoint: {global_norm_spike_threshold: 9.5}\n"
    room.change("callbacks:", f"{watch}callbacks:").change_scenario("[TTP]", "[TTP, TRE]")
    assert room.checkout("2.1.0").plan().fault_tolerance.watch is not None
    assert "nothing checks the global norm" in room.checkout("1.8.0").refused()


def test_slices_are_watched_too(room: Room) -> None:
    watch = "monitor_config:\n  monitor_on: True\n  check_for_global_norm: True\n"
    room.change("callbacks:", f"{watch}callbacks:").change_scenario("[TTP]", "[TTP, TRE]")
    room.change(SIZES, "  data_parallel: 2\n  model_parallel: 2\n")
    assert room.plan().fault_tolerance.watch is not None


def test_without_sinking_there_is_one_step_at_a_time_whatever_the_sink_size(room: Room) -> None:
    room.change_scenario("[TTP]", "[]")
    room.change_scenario("faults:", "expect: {}\nfaults:")
    room.change("sink_mode: True\n  sink_size: 1", "sink_mode: False\n  sink_size: -1")
    assert room.cell().scenario.job.sink_size == 1
    assert (
        room.plan().explanation.configured["job.sink_size"]
        == "job.yaml:11: runner_config.sink_mode: False (one step at a time)"
    )


def test_of_two_names_for_weights_the_one_that_mindformers_takes_is_told(room: Room) -> None:
    room.change("run_mode", "load_checkpoint: old\ncheckpoint: {load_path: new}\nrun_mode")
    assert room.plan().explanation.configured["weights from"] == "job.yaml:5: checkpoint.load_path: new"


def test_steps_are_spread_over_the_epochs(room: Room) -> None:
    plan = room.plan()
    assert (plan.training.last_step, plan.training.steps_per_epoch) == (12, 6)
    assert plan.explanation.configured["job.steps_per_epoch"] == "job.yaml:9: runner_config.epochs: 2 (6 steps in each)"
    room.change_scenario("steps: 12", "steps: 13")
    message = room.refused()
    assert (
        "scenario.yaml:6:3: 13 steps are no whole number of steps in each epoch: job.yaml:9: runner_config" in message
    )


def test_names_of_files_are_those_of_mode_and_format(room: Room) -> None:
    def named() -> set[str]:
        plan = room.plan()
        assert plan.checkpoint is not None
        return {name.rpartition("/")[2] for name in plan.checkpoint.files.values()}

    room.change_scenario("step: 6", "step: 8")
    assert named() == {"tiny_rank_0-8_1.ckpt"}
    room.change("sink_mode: True", "sink_mode: False")
    assert named() == {"tiny_rank_0-2_2.ckpt"}  # the second step of the second epoch
    room.change("    prefix", "    checkpoint_format: safetensors\n    prefix")
    assert named() == {"tiny_rank_0-2_2.safetensors"}
    room.change("run_mode", "use_legacy_format: False\nrun_mode")
    assert named() == set()  # the new layout has names of its own


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("seed: 7", "seed: seven", "job.yaml:1:1: seed must be a whole number from 0, not text 'seven'"),
        (
            "sink_size: 1",
            "sink_size: [1]",
            "job.yaml:12:3: runner_config.sink_size must be a whole number from -1, not a list",
        ),
        (
            "data_parallel: 4",
            "data_parallel: 0",
            "parallel_config.data_parallel must be a whole number from 1, not the",
        ),
        (
            "use_parallel: True",
            "use_parallel: 'yes'",
            "job.yaml:3:1: use_parallel must be true or false, not text 'yes'",
        ),
        ("prefix: tiny", "prefix: 5", "job.yaml:20:5: prefix must be text, not the number 5"),
        ("steps: 4", "steps: four", "save_checkpoint_steps must be a whole number, not text 'four'"),
        ("callbacks:", "callbacks: 5\nother:", "job.yaml:17:1: callbacks must be a list, not the number 5"),
        ("parallel_config:", "parallel_config: 5\nother:", "job.yaml:13:1: parallel_config must be a mapping, not the"),
        (
            "data_parallel: 4\n  model_parallel: 1",
            f"data_parallel: {NINES}\n  model_parallel: {NINES}",
            "parallel_config.model_parallel must be 1000000000 at most, not the number 999",
        ),
        ("epochs: 2", f"epochs: -{NINES}", "runner_config.epochs must be a whole number from 1, not the number -999"),
        ("sink_size: 1", f"sink_size: 0x{NINES}{NINES}", "cannot be read as int"),
        ("steps: 4", f"steps: {NINES}", "save_checkpoint_steps must be 1000000000 at most, not the number 999"),
        ("seed: 7", "seed: 4294967296", "seed must be 4294967295 at most, not the number 4294967296"),
        (
            "callbacks:",
            "monitor_config: {monitor_on: True, check_for_global_norm: True, "
            f"global_norm_spike_threshold: {NINES}}}\ncallbacks:",
            "monitor_config.global_norm_spike_threshold must be a number of at most 308 digits, not the number 999",
        ),
    ],
)
def test_values_of_the_wrong_type_are_refused_at_their_line(room: Room, old: str, new: str, said: str) -> None:
    assert said in room.change(old, new).refused()


@pytest.mark.parametrize(("scheduler", "ranks"), [("1f1b", (2, 3)), ("zero_bubble_v", (0, 0))])
def test_the_ranks_whose_loss_is_valid_are_those_of_the_last_stage(
    room: Room, scheduler: str, ranks: tuple[int, int]
) -> None:
    assert room.plan().layout.loss_ranks is None
    room.change(SIZES, "  data_parallel: 2\n  model_parallel: 1\n  pipeline_stage: 2\n")
    room.configuration += f"parallel: {{pipeline_config: {{pipeline_scheduler: {scheduler}}}}}\n"
    assert room.plan().layout.loss_ranks == ranks


@pytest.mark.parametrize(("version", "steps"), [("2.1.0", 2), ("1.8.0", 3)])
def test_of_two_callbacks_the_first_counts_in_the_new_layout_of_2_1(room: Room, version: str, steps: int) -> None:
    room.checkout(version).change("run_mode", "use_legacy_format: False\nrun_mode").change("steps: 4", "steps: 2")
    room.change("context:", "  - type: CheckpointMonitor\n    save_checkpoint_steps: 3\ncontext:")
    assert room.plan().training.checkpoint_interval == steps
