"""A null is no value left out: MindFormers reads it as false, or ends. An override with it does the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.jobs.mindformers.test_releases import TEMPLATE

if TYPE_CHECKING:
    from tests.unit.jobs.mindformers.conftest import Room


def _set(room: Room, key: str, written: str, *, over: bool) -> Room:
    """Write a key, with dots for sections, into the configuration, or override it."""
    if over:
        return room.change_scenario("  steps: 12", f"  overrides: {{{key}: {written}}}\n  steps: 12")
    if key == "runner_config.sink_mode":
        return room.change("sink_mode: True", f"sink_mode: {written}")
    section, _, name = key.rpartition(".")
    return room.change(
        "run_mode", f"{section}: {{{name}: {written}}}\nrun_mode" if section else f"{key}: {written}\nrun_mode"
    )


@pytest.mark.parametrize("over", [False, True])
@pytest.mark.parametrize(
    ("version", "written", "layout"),
    [
        ("2.1.0", "null", "null (new)"),
        ("1.8.0", "null", "null (new)"),
        ("2.1.0", "True", "True (legacy)"),
        ("1.6.0", "null", "null (legacy: MindFormers 1.6 does not go by it)"),
    ],
)
def test_a_layout_of_null_is_the_new_one(room: Room, version: str, written: str, layout: str, over: bool) -> None:
    room.checkout(version)
    plan = _set(room, "use_legacy_format", written, over=over).plan()
    assert plan.explanation.configured["checkpoint layout"].lower().endswith(f"use_legacy_format: {layout}".lower())
    assert plan.checkpoint is not None
    assert bool(plan.checkpoint.files) == ("legacy" in layout.split("_")[-1])


@pytest.mark.parametrize("written", ["null", "0", "False"])
def test_the_callback_of_1_7_reads_null_and_0_too(room: Room, written: str) -> None:
    room.checkout("1.7.0").change("    prefix", f"    use_legacy_format: {written}\n    prefix")
    assert room.plan().explanation.configured["checkpoint layout"] == f"job.yaml:20: use_legacy_format: {written} (new)"


@pytest.mark.parametrize("over", [False, True])
@pytest.mark.parametrize(
    ("written", "form"), [("null", "safetensors"), ("0", "safetensors"), ("False", "safetensors"), ("True", "ckpt")]
)
def test_a_model_whose_kind_is_null_is_saved_as_safetensors(room: Room, written: str, form: str, over: bool) -> None:
    plan = _set(room, "use_legacy", written, over=over).plan()
    assert plan.checkpoint is not None
    assert {name.rpartition(".")[2] for name in plan.checkpoint.files.values()} == {form}


@pytest.mark.parametrize("written", ["null", "0"])
def test_moe_config_is_not_read_for_a_model_whose_kind_is_null(room: Room, written: str) -> None:
    room.checkout("2.1.0", TEMPLATE).change("run_mode", f"use_legacy: {written}\nmoe_config: {{experts: 2}}\nrun_mode")
    room.plan()


def test_a_rollback_is_refused_at_the_model_whose_kind_is_null(room: Room) -> None:
    watch = "monitor_config: {monitor_on: True, check_for_global_norm: True}\n"
    room.change_scenario("[TTP]", "[TRE]").change("run_mode", f"use_legacy: null\n{watch}run_mode")
    assert room.refused().startswith(
        "job.yaml:4:1: TRE (scenario.yaml:7) goes back to a checkpoint of load_ckpt_format"
    )


@pytest.mark.parametrize("over", [False, True])
def test_sinking_of_null_ends_the_job(room: Room, over: bool) -> None:
    room.change("save_checkpoint_steps: 4", "save_checkpoint_steps: 3").change_scenario("[TTP]", "[]")
    _set(room, "runner_config.sink_mode", "null", over=over).change("sink_size: 1", "sink_size: 4")
    place = "scenario.yaml:6:15" if over else "job.yaml:11:3"
    message = room.refused()
    assert message.startswith(
        f"{place}: runner_config.sink_mode is null, not left out: MindSpore ends with 'The input value"
    )
    assert message.count("\n\n") == 0


@pytest.mark.parametrize("over", [False, True])
def test_there_is_no_parallel_mode_null(room: Room, over: bool) -> None:
    _set(room, "parallel.parallel_mode", "null", over=over)
    place = "scenario.yaml:6:15" if over else "job.yaml:4:12"
    assert room.refused().startswith(f"{place}: there is no parallel_mode 'null': MindFormers ends with 'Invalid para")


@pytest.mark.parametrize("written", ["null", "0"])
def test_an_optimizer_that_null_leaves_out_of_the_new_layout_is_refused(room: Room, written: str) -> None:
    room.change("    prefix", f"    save_optimizer: {written}\n    prefix").plan()
    room.change("run_mode", "use_legacy_format: False\nrun_mode")
    assert room.refused().startswith("job.yaml:21:5: save_optimizer leaves the optimizer's state out of the checkpoi")
