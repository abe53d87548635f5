"""Parallel and execution modes, sinks, and configurations of another form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.jobs.mindformers.conftest import Room

SHARDED = "enable_parallel_optimizer: True"
WATCH = "monitor_config: {monitor_on: True, check_for_global_norm: True}\n"


def in_mode(room: Room, mode: str, more: str = "") -> Room:
    """Let the job train in this parallel mode."""
    return room.change("parallel_config:", f"parallel:\n  parallel_mode: {mode}\n{more}parallel_config:")


@pytest.mark.parametrize("mode", ["0", "DATA_PARALLEL"])
def test_sharded_updates_in_pure_data_parallelism_leave_one_copy_of_the_state(room: Room, mode: str) -> None:
    message = in_mode(room, mode, f"  {SHARDED}\n").refused()
    assert message.startswith(
        f"job.yaml:15:3: with enable_parallel_optimizer in parallel_mode {mode} (job.yaml:14) each"
    )
    assert "TTP (scenario.yaml:7) needs replicas" in message
    room.change_scenario("[TTP]", "[]").plan()


@pytest.mark.parametrize(
    ("mode", "device", "words"),
    [
        ("3", "Ascend", "in parallel_mode 3 (job.yaml:14), and ends the job"),
        ("STAND_ALONE", "Ascend", "in parallel_mode STAND_ALONE (job.yaml:14), and ends the job"),
        ("0", "CPU", "in parallel_mode 0 (job.yaml:14) on a CPU, and ends the job"),
    ],
)
def test_where_mindspore_has_no_parallel_optimizer_it_is_refused(
    room: Room, mode: str, device: str, words: str
) -> None:
    room.change_scenario("[TTP]", "[]").change_scenario("rank: 1", "rank: 0").change(
        "target: Ascend", f"target: {device}"
    )
    in_mode(room, mode).plan()
    room.change("parallel_config:", f"  {SHARDED}\nparallel_config:")
    assert f"job.yaml:15:3: MindSpore has no parallel optimizer {words}" in room.refused()


@pytest.mark.parametrize("mode", ["4", "SEMI_AUTO", "semi_auto_parallel", "'1'", "[1]"])
def test_a_parallel_mode_that_there_is_not_is_refused(room: Room, mode: str) -> None:
    message = in_mode(room, mode).refused()
    assert message.startswith("job.yaml:14:3: there is no parallel_mode ")
    assert "'Invalid parallel mode.'" in message
    room.change("use_parallel: True", "use_parallel: False").change_scenario("[TTP]", "[]")
    room.change_scenario("rank: 1", "rank: 0").plan()  # nobody looks at it


@pytest.mark.parametrize("mode", ["1", "SEMI_AUTO_PARALLEL", "2", "AUTO_PARALLEL"])
def test_in_these_modes_the_sizes_count(room: Room, mode: str) -> None:
    room.change("data_parallel: 4\n  model_parallel: 1", "data_parallel: 2\n  model_parallel: 2")
    assert in_mode(room, mode).plan().layout.replica_groups == ((0, 2), (1, 3))


@pytest.mark.parametrize("mode", ["3", "HYBRID_PARALLEL"])
def test_in_hybrid_mode_mindformers_sets_all_sizes_to_1(room: Room, mode: str) -> None:
    room.change("data_parallel: 4\n  model_parallel: 1", "data_parallel: 2\n  model_parallel: 2")
    room.change_scenario("name: example", "name: example\ncluster: {ranks: 4}")
    assert in_mode(room, mode).plan().layout.replica_groups == ((0, 1, 2, 3),)


def test_tre_works_in_graph_mode_only(room: Room) -> None:
    room.change_scenario("[TTP]", "[TRE]").change("callbacks:", f"{WATCH}callbacks:")
    room.plan()
    message = room.change("  device_target", "  mode: 1\n  device_target").refused()
    assert message.startswith("job.yaml:24:3: TRE (scenario.yaml:7) works in graph mode only")


@pytest.mark.parametrize(("sink", "steps", "interval"), [(2, 1, 2), (2, 3, 4), (2, 4, 4), (3, 4, 6)])
def test_a_checkpoint_that_is_due_within_a_sink_is_saved_at_its_end(
    room: Room, sink: int, steps: int, interval: int
) -> None:
    room.change("sink_size: 1", f"sink_size: {sink}").change("steps: 4", f"steps: {steps}")
    room.change_scenario("[TTP]", "[]")
    plan = room.plan()
    assert plan.training.checkpoint_interval == interval
    message = f"job.yaml:21: save_checkpoint_steps: {steps}"
    if interval != steps:
        message += f" (every {interval} steps, at the end of a sink of {sink})"
    assert plan.explanation.configured["job.checkpoint_interval"] == message


def test_without_sinks_a_checkpoint_is_saved_when_it_is_due(room: Room) -> None:
    room.change("sink_mode: True\n  sink_size: 1", "sink_mode: False\n  sink_size: 2").change("steps: 4", "steps: 3")
    assert room.change_scenario("[TTP]", "[]").plan().training.checkpoint_interval == 3


def test_a_default_is_refused_at_the_line_of_the_switch_that_makes_it_count(room: Room) -> None:
    room.change("parallel_config:", f"parallel:\n  {SHARDED}\nparallel_config:")
    message = room.refused()
    assert message.startswith("job.yaml:14:3: cluster.parallel.optimizer_weight_shard_size, which job.yaml decides")
    assert f"\n      {SHARDED}\n" in message


def test_a_watch_without_a_threshold_is_refused_at_the_line_that_switches_it_on(room: Room) -> None:
    message = room.change("callbacks:", f"{WATCH}callbacks:").refused()
    assert message.startswith("job.yaml:17:36: job.tre, which job.yaml decides (monitor_config.check_for_global_norm)")
    assert f"\n    {WATCH}" in message


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (("    prefix", "    checkpoint_format: safetensors\n    prefix"), "job.yaml:21:5"),
        (("run_mode", "use_legacy: False\nrun_mode"), "job.yaml:4:1"),
        (("run_mode", "load_ckpt_format: safetensors\nrun_mode"), "job.yaml:4:1"),
    ],
)
def test_formats_that_differ_are_refused_at_the_one_that_is_written(
    room: Room, change: tuple[str, str], place: str
) -> None:
    room.change_scenario("[TTP]", "[TRE]").change("callbacks:", f"{WATCH}callbacks:").plan()
    assert (
        room.change(*change).refused().startswith(f"{place}: TRE (scenario.yaml:7) goes back to a checkpoint of load")
    )


def test_a_configuration_of_another_form_is_refused_at_its_first_section(room: Room) -> None:
    room.configuration = "run_mode: train\ntraining_args: {epochs: 2}\nparallel: {parallel_mode: 1}\n"
    message = room.change_scenario("[TTP]", "[]").change_scenario("rank: 1", "rank: 0").refused()
    assert message.startswith("job.yaml:2:1: none of runner_config, parallel_config, trainer, callbacks is in this")
    room.configuration += "runner_config: {epochs: 2}\n"
    room.plan()
