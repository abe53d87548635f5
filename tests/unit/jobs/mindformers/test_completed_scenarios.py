"""What the configuration of a job decides may be left out of its scenario; what both write must agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.unit.jobs.mindformers.conftest import Room


def test_what_is_left_out_comes_from_the_configuration(room: Room) -> None:
    room.change("data_parallel: 4", "data_parallel: 2").change("model_parallel: 1", "model_parallel: 2")
    scenario = room.cell().scenario
    assert scenario.cluster.ranks == 4
    assert scenario.cluster.parallel is not None
    assert (scenario.cluster.parallel.data_parallel, scenario.cluster.parallel.model_parallel) == (2, 2)
    assert (scenario.job.sink_size, scenario.job.checkpoint_interval, scenario.job.seed) == (1, 4, 7)


def test_the_plan_tells_which_line_each_value_comes_from(room: Room) -> None:
    answer = room.plan().explanation.configured
    assert answer["job.seed"] == "job.yaml:1: seed: 7"
    assert answer["job.checkpoint_interval"] == "job.yaml:21: save_checkpoint_steps: 4"
    assert answer["cluster.parallel.data_parallel"] == "job.yaml:14: parallel_config.data_parallel: 4"
    room.change("  sink_size: 1\n", "")
    assert (
        room.plan().explanation.configured["job.sink_size"]
        == "job.yaml leaves runner_config.sink_size out, which means 1"
    )


def test_what_both_write_may_agree(room: Room) -> None:
    room.change_scenario("steps: 12", "steps: 12\n  seed: 7\n  sink_size: 1")
    assert "job.seed" not in room.plan().explanation.configured


def test_what_both_write_differently_is_refused_with_both_lines(room: Room) -> None:
    room.change_scenario("steps: 12", "steps: 12\n  seed: 8")
    message = room.refused()
    assert message.startswith("scenario.yaml:7:9: job.seed is 8 here, but job.yaml:1: seed: 7\n")
    assert "leave job.seed out of the scenario" in message


def test_an_override_counts_more_than_the_file_and_is_named(room: Room) -> None:
    written = "overrides: {seed: 8, runner_config.sink_size: 1, parallel_config: {data_parallel: 8}}"
    room.change_scenario("steps: 12", f"steps: 12\n  {written}")
    cell = room.cell()
    assert (cell.scenario.job.seed, cell.scenario.cluster.ranks) == (8, 8)
    assert str(cell.origins["job.seed"]) == "scenario.yaml:7: seed: 8"


def test_a_value_that_no_scenario_may_have_is_refused_at_its_line(room: Room) -> None:
    room.change("save_checkpoint_steps: 4", "save_checkpoint_steps: 0")
    assert "job.yaml:21:" in room.refused()


def test_rules_over_several_keys_see_what_was_filled_in(room: Room) -> None:
    room.change_scenario("rank: 1", "rank: 4")
    assert "rank 4 of 4" in room.refused()


def test_a_kind_without_a_configuration_refuses_one_by_name(room: Room) -> None:
    room.change_scenario("kind: mindformers", "kind: plain")
    assert "scenario.yaml:5:3: job kind 'plain' is described by no configuration" in room.refused()


def test_a_kind_that_needs_a_configuration_asks_for_it(room: Room) -> None:
    room.change_scenario("  config: job.yaml\n", "")
    assert "described by a configuration of MindFormers, and none is named" in room.refused()


def test_overrides_without_a_configuration_are_refused(room: Room) -> None:
    room.change_scenario("kind: mindformers\n  config: job.yaml\n", "kind: plain\n  overrides: {seed: 1}\n")
    room.change_scenario("name: example", "name: example\ncluster: {ranks: 2}")
    assert "overrides has no effect without job.config" in room.refused()


def test_cells_of_a_matrix_are_completed_one_by_one(room: Room) -> None:
    room.change_scenario("name: example", "name: example\nmatrix: {seed: [1, 2]}")
    room.change_scenario("steps: 12", 'steps: 12\n  overrides: {seed: "${seed}"}')
    assert [cell.scenario.job.seed for cell in room.cells()] == [1, 2]


def test_a_section_that_no_axis_touches_is_completed_in_every_cell(room: Room) -> None:
    room.change_scenario("name: example", "name: example\nmatrix: {size: [2, 4]}\ncluster: {nodes: 1}")
    room.change_scenario("steps: 12", 'steps: 12\n  overrides: {parallel_config.data_parallel: "${size}"}')
    assert [cell.scenario.cluster.ranks for cell in room.cells()] == [2, 4]
