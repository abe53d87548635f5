"""What the commands print and find, without a job."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.cli.main import COMMANDS
from chaos.cli.paths import find_run, run_names, scenario_directories
from chaos.doctor import PROBES, Probe
from chaos.store.directory import create_run
from tests.unit.cli import kit
from tests.unit.cli.kit import SCENARIO, Ended

Call = Callable[..., Ended]


def test_plan_prints_what_should_happen(chaos: Call, place: Path) -> None:
    ended = chaos("plan", "kill-rank")
    assert ended.code == 0, ended.err
    assert "TTP" in ended.out


def test_plan_as_json_takes_settings_and_the_seed(chaos: Call, place: Path) -> None:
    (plan,) = json.loads(chaos("plan", "kill-rank.yaml", "--set", "victim=2", "--json").out)["plans"]
    assert plan["faults"][0]["ranks"] == [2]
    drawn = SCENARIO.replace('{rank: "${victim}"}', "{random: {among: [1, 2, 3]}}").replace(
        "variables: {victim: 1}\n", ""
    )
    (place / "scenarios" / "drawn.yaml").write_text(drawn)
    (plan,) = json.loads(chaos("plan", "drawn", "--seed", "7", "--json").out)["plans"]
    assert plan["faults"][0]["seed"] == 7
    assert chaos("plan", "drawn", "--seed", "7", "--json").out == chaos("plan", "drawn", "--seed", "7", "--json").out


def test_an_unknown_cell_is_told_what_was_meant(chaos: Call, place: Path) -> None:
    file = place / "scenarios" / "kill-rank.yaml"
    file.write_text(SCENARIO.replace("variables: {victim: 1}", "matrix: {victim: [1, 2]}"))
    ended = chaos("plan", "kill-rank", "--cell", "victm=2")
    assert ended.code == 64
    assert "did you mean 'victim=2'?" in ended.err
    assert len(json.loads(chaos("plan", "kill-rank", "--cell", "victim=2", "--json").out)["plans"]) == 1


def test_a_scenario_is_found_from_a_directory_below(place: Path) -> None:
    below = place / "a" / "b"
    below.mkdir(parents=True)
    assert scenario_directories(below)[0] == place / "scenarios"


def test_validate_prints_every_problem_of_every_file(chaos: Call, place: Path) -> None:
    assert chaos("validate", "scenarios").code == 0
    (place / "scenarios" / "one.yaml").write_text(SCENARIO.replace("steps: 12", "steps: 0"))
    (place / "scenarios" / "two.yaml").write_text(SCENARIO.replace("kind: kill", "kind: kil") + "colour: red\n")
    ended = chaos("validate", "scenarios", "--json")
    assert ended.code == 64
    found = json.loads(ended.out)
    assert found["files"] == 3
    assert [(Path(problem["file"]).name, problem["line"]) for problem in found["problems"]] == [
        ("one.yaml", 7),
        ("two.yaml", 9),
        ("two.yaml", 12),
    ]
    plain = chaos("validate", "scenarios")
    assert plain.code == 64
    assert plain.out.endswith("3 problems in 3 files\n")


def test_validate_finds_an_expectation_that_the_plan_shows_to_be_impossible(chaos: Call, place: Path) -> None:
    file = place / "scenarios" / "kill-rank.yaml"
    file.write_text(SCENARIO + "expect: {checkpoint: {step: 11}}\n")
    ended = chaos("validate", str(file))
    assert ended.code == 64
    assert "kill-rank.yaml:12" in ended.out


@pytest.mark.parametrize("command", ["validate", "list"])
def test_a_scenario_is_validated_and_listed_by_the_name_that_run_takes(chaos: Call, place: Path, command: str) -> None:
    for given in ("kill-rank", "kill-rank.yaml", "scenarios/kill-rank.yaml", "scenarios"):
        ended = chaos(command, given)
        assert (ended.code, ended.err) == (0, "")
    assert json.loads(chaos("list", "kill-rank", "--json").out)["scenarios"][0]["name"] == "kill-rank"
    mistyped = chaos(command, "kil-rank.yaml")
    assert (mistyped.code, "did you mean 'kill-rank'?" in mistyped.err) == (64, True)


@pytest.mark.parametrize("command", ["run", "soak"])
def test_reports_that_cannot_be_written_are_bad_usage(
    chaos: Call, place: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    ended = chaos(command, "kill-rank", "--reports", "/proc/reports")
    assert (ended.code, "the directory cannot be made" in ended.err) == (64, True)
    (place / "shut").mkdir()
    monkeypatch.setattr("chaos.cli.paths.os.access", lambda path, mode: path != Path("shut"))
    ended = chaos(command, "kill-rank", "--reports", "shut")
    assert (ended.code, "no run can be written there; give another directory" in ended.err) == (64, True)


def test_an_unknown_platform_is_told_what_was_meant(chaos: Call, place: Path) -> None:
    ended = chaos("plan", "kill-rank", "--platform", "lcoal")
    assert (ended.code, "no platform 'lcoal'; did you mean 'local'?" in ended.err) == (64, True)


@pytest.mark.parametrize(
    ("word", "option"), [("help", "help"), ("version", "version"), ("hlep", "help"), ("versoin", "version")]
)
def test_a_command_of_other_programs_is_told_the_option_that_it_is_here(chaos: Call, word: str, option: str) -> None:
    ended = chaos(word)
    assert (ended.code, f"Did you mean 'chaos --{option}'?" in ended.err) == (64, True)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_in_the_width_of_a_terminal(chaos: Call, command: str) -> None:
    ended = chaos(command, "--help")
    assert ended.code == 0
    assert [line for line in ended.out.splitlines() if len(line) > 80] == []
    assert "--debug" in ended.out or command == "kubernetes"  # there it belongs to the commands of the group


def test_each_command_for_clusters_has_a_whole_line_in_the_help(chaos: Call) -> None:
    group = chaos("kubernetes", "--help").out
    assert "..." not in group.replace("[ARGS]...", "")
    for command in ("check", "manifest", "rbac"):
        assert f"  {command}" in group
        ended = chaos("kubernetes", command, "--help")
        assert (ended.code, [line for line in ended.out.splitlines() if len(line) > 80]) == (0, [])


def test_list_shows_names_tags_and_cells(chaos: Call, place: Path) -> None:
    ended = chaos("list", "scenarios", "--json")
    (row,) = json.loads(ended.out)["scenarios"]
    assert (row["name"], row["tags"], row["cells"], row["description"]) == ("kill-rank", ["ttp"], [""], "A rank dies.")
    assert chaos("list", "scenarios").out.splitlines() == [
        "  kill-rank  A rank dies.",
        "1 scenario, 1 cell; chaos list NAME says more",
    ]


def test_schema_is_the_schema_of_what_is_registered(chaos: Call, place: Path) -> None:
    schema = json.loads(chaos("schema").out)
    assert schema["$schema"].startswith("http://json-schema.org/draft-07/")


def test_the_reference_of_the_language_is_up_to_date(chaos: Call) -> None:
    written = Path(__file__).parents[4] / "docs" / "reference" / "scenario.md"
    advice = f"run: chaos schema --markdown > {written}"
    assert chaos("schema", "--markdown").out == written.read_text(), advice


def test_doctor_answers_for_what_was_asked(chaos: Call, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit, "PLATFORM", replace(kit.PLATFORM, needs=("ssh",)))
    monkeypatch.setitem(PROBES, "ssh", lambda machine: Probe("ssh", False, "not installed", "install it"))
    asked = json.loads(chaos("doctor", "kill-rank", "--json").out)
    assert "cores" in next(iter(asked["asked"].values()))
    missing = chaos("doctor", "--for", "local", "--json")
    assert missing.code == 2
    assert json.loads(missing.out)["missing"] == ["ssh"]
    mistyped = chaos("doctor", "--for", "locl")
    assert (mistyped.code, "did you mean 'local'?" in mistyped.err) == (64, True)
    assert "there are: local, rehearsal" in chaos("doctor", "--for", "moon").err
    assert "install it" in chaos("doctor").out


def test_doctor_does_not_say_that_nothing_is_missing_where_the_vendors_package_does_not_fit(
    chaos: Call, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROBES, "interface", lambda machine: Probe("interface", True, "agree"))
    monkeypatch.setattr(kit, "PLATFORM", replace(kit.PLATFORM, needs=("mindspore",)))
    monkeypatch.setitem(PROBES, "mindspore", lambda machine: Probe("mindspore", True, "2.10"))
    ended = chaos("doctor")
    assert (ended.code, "Nothing is missing for every run." in ended.out) == (0, True)
    monkeypatch.setitem(PROBES, "interface", lambda machine: Probe("interface", False, "disagree", "one release"))
    ended = chaos("doctor")
    assert (ended.code, "Nothing is missing" in ended.out) == (2, False)
    assert "Missing for every run: interface" in ended.out
    assert "with --sdk standin or without MindIO TFT only" in ended.out
    assert json.loads(chaos("doctor", "--json").out)["kinds"]["local"]["standin_only"] is True


def test_a_run_is_found_by_path_by_name_and_as_the_latest(tmp_path: Path) -> None:
    run = tmp_path / "reports" / "kill-rank-1"
    run.mkdir(parents=True)
    (run / "run.json").write_text("{}")
    (tmp_path / "reports" / "latest").symlink_to("kill-rank-1")
    paths = [find_run(text, tmp_path / "reports") for text in (str(run), "kill-rank-1", "latest")]
    assert paths == [run, run, run]
    assert run_names(tmp_path / "reports") == ["kill-rank-1"]


def test_a_run_that_is_not_there_is_bad_usage(chaos: Call, place: Path) -> None:
    assert "there is no directory reports" in chaos("analyze").err
    (place / "reports").mkdir()
    assert "there are no runs in" in chaos("analyze").err
    assert "is a file: a run is a directory" in chaos("analyze", "scenarios/kill-rank.yaml").err
    run = place / "reports" / "kill-rank-1"
    run.mkdir(parents=True)
    assert "is not the directory of a run" in chaos("analyze", "kill-rank-1").err
    (run / "run.json").write_text("{}")
    ended = chaos("heal", "kill-rnak-1")
    assert (ended.code, "did you mean 'kill-rank-1'?" in ended.err) == (64, True)


def test_heal_that_finds_no_run_does_not_say_that_nothing_is_left(chaos: Call, place: Path) -> None:
    elsewhere = "for runs kept elsewhere give --reports\n"
    assert chaos("heal").out == f"no run found below reports: there is no such directory; {elsewhere}"
    (place / "reports" / ".baselines").mkdir(parents=True)
    assert chaos("heal").out == f"no run found below reports; {elsewhere}"
    result = json.loads(chaos("heal", "--json").out)
    assert result == {"schema_version": 1, "healed": True, "looked_at": 0, "runs": []}


def test_heal_with_nothing_left_says_so(chaos: Call, place: Path) -> None:
    create_run(place / "reports", "one").lock.release()
    assert chaos("heal").out == "nothing to heal in reports\n"
    assert json.loads(chaos("heal", "--json").out)["looked_at"] == 1


def test_heal_that_could_not_put_all_back_is_3(chaos: Call, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from chaos.heal.heal_report import HealReport

    monkeypatch.setattr(
        "chaos.heal.heal.heal_all", lambda reports: [HealReport("r", Path("r"), failed=["rank 2: still there"])]
    )
    ended = chaos("heal")
    assert ended.code == 3
    assert "rank 2: still there" in ended.out


def test_heal_leaves_a_live_run_alone(chaos: Call, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from chaos.heal.heal_report import HealReport

    monkeypatch.setattr("chaos.heal.heal.heal_all", lambda reports: [HealReport("r", Path("r"), live=True)])
    assert chaos("heal").code == 0
