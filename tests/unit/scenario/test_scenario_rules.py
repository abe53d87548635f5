"""Wrong and impossible values are reported together, in plain words, with what was probably meant."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import get_args

import pytest

from chaos.scenario.errors import Problem, ScenarioError
from chaos.scenario.load import LoadedScenario, load_scenario
from chaos.scenario.models.ids import fault_ids
from chaos.scenario.models.parallel import effective_parallel
from chaos.scenario.models.terms import Phase

Problems = Callable[..., list[Problem]]
Load = Callable[..., LoadedScenario]

PHASES = ", ".join(get_args(Phase))


@pytest.mark.parametrize(
    ("old", "new", "message", "hint"),
    [
        # Keys
        ("data_parallel: 8", "data_paralel: 8", "unknown key 'data_paralel'", "did you mean 'data_parallel'?"),
        ("nodes: 2", "data-parallel: 2", "unknown key 'data-parallel'", ""),
        ("nodes: 2", "data_parallel: 2", "unknown key 'data_parallel'", "belongs under 'cluster.parallel'"),
        ("nodes: 2", "xyzzy: 2", "unknown key 'xyzzy'", "here: docker, kubernetes, network, nodes, parallel"),
        ("  steps: 10\n", "", "'job' needs the key 'steps'", ""),
        ("cluster:", "clustre:", "unknown key 'clustre'", "did you mean 'cluster'?"),
        # Types
        ("steps: 10", "steps: four", "'steps' must be a whole number, not text 'four'", ""),
        ("steps: 10", 'steps: "10"', "'steps' must be a whole number, not text '10'", ""),
        ("steps: 10", "steps: 10.0", "'steps' must be a whole number, not the number 10.0", ""),
        ("steps: 10", "steps: true", "'steps' must be a whole number, not true", ""),
        ("steps: 10", "steps:", "'steps' must be a whole number, not nothing", ""),
        ("steps: 10", "steps: [10]", "'steps' must be a whole number, not a list", ""),
        ("steps: 10", "steps: 0", "'steps' must be at least 1, not 0", ""),
        ('GLOG_v: "2"', "GLOG_v: 2", "'GLOG_v' must be text, not the number 2", 'put it in quotes: "2"'),
        ('GLOG_v: "2"', "GLOG_v: true", "'GLOG_v' must be text, not true", 'put it in quotes: "true"'),
        ("tags: [ttp, kill]", "tags: ttp", "'tags' must be a list, not text 'ttp'", ""),
        ("tags: [ttp, kill]", "tags: [1]", "'tags[0]' must be text, not the number 1", 'put it in quotes: "1"'),
        ("tags: [ttp, kill]", "tags: ['a b']", "'tags[0]' must begin with a letter or '_'", ""),
        ("optimizer: true", "optimizer: yes", "'enable_parallel_optimizer' must be true or false, not text 'yes'", ""),
        ("tolerance: 0.001", "tolerance: true", "'tolerance' must be a number, not true", ""),
        ("tolerance: 0.001", "tolerance: '0.1'", "'tolerance' must be a number, not text '0.1'", ""),
        ("tolerance: 0.001", "tolerance: .nan", "'tolerance' must be a finite number, not the number nan", ""),
        ("tolerance: 0.001", "tolerance: -1", "'tolerance' must be at least 0, not -1", ""),
        ("recovery:\n    total: ${total}\n    phases: {detection: 1.5s}", "recovery: 5", "not the number 5", ""),
        # Durations
        ("elapsed: 200ms", "elapsed: 200", "'elapsed' is the number 200, but a duration needs a unit", ""),
        ("elapsed: 200ms", "elapsed: 2.5", "'elapsed' is the number 2.5, but a duration needs a unit", ""),
        ("elapsed: 200ms", "elapsed: 2 weeks", "'elapsed' is text '2 weeks', but a duration needs a unit", ""),
        ("elapsed: 200ms", f"elapsed: {'9' * 400}s", "but a duration is at most 8784h, a year", ""),
        ("run: 5m", "run: 0s", "'run' must be more than 0, not 0s", ""),
        # Words
        ("phase: ${phase}", "phase: step.ned", f"must be one of {PHASES}, not text 'step.ned'", "'step.end'?"),
        ("[TTP, ARF]", "[TPP]", "'protection[0]' must be one of TTP", "did you mean 'TTP'?"),
        ("mechanism: TTP", "mechanism: nne", "'mechanism' must be one of TTP", "did you mean 'none'?"),
        ("resume: none", "resume: nne", "must be 'none' or a mapping with the keys step, not text 'nne'", "'none'?"),
        ("resume: none", "resume: {stp: 3}", "unknown key 'stp'", "did you mean 'step'?"),
        ("resume: none", "resume: {step: x}", "'step' must be a whole number, not text 'x'", ""),
        ("rank: ${victim}", "role: contoller", "'role' must be one of controller, last_stage", "'controller'?"),
        ("kind: process.kill", "kind: process.kil", "there is no fault kind 'process.kil'", "'process.kill'?"),
        ("kind: rehearsal", "kind: rehersal", "there is no job kind 'rehersal'", "did you mean 'rehearsal'?"),
        ("platform: local", "platform: moon", "there is no platform 'moon'", "platforms: local"),
        ("name: kill-${victim}", "name: ..", "'name' must begin with a letter or a digit", ""),
        ("name: kill-${victim}", "name: a/b", "'name' must begin with a letter or a digit", ""),
        ("failing: [loss]", "", "a finding needs the checks that fail by it", "failing: [loss]"),
        ("failing: [loss]", "failing: []", "a finding needs the checks that fail by it", "failing: [loss]"),
        ("finding: F-07", "", "failing has no effect without finding", ""),
        ("finding: F-07", "finding: F7", "'finding' must look like F-01, not 'F7'", ""),
        ("finding: F-07", "finding: {id: F7}", "'id' must look like F-01, not 'F7'", ""),
        (
            "finding: F-07",
            "finding: {id: F-07, sdk: vendor, with_vendor: [run]}",
            "the finding is of the SDK vendor alone",
            "name all checks in failing",
        ),
        (
            "finding: F-07",
            "finding: {id: F-07, sdk: standin, with_vendor: [run]}",
            "the finding is of the SDK standin alone",
            "take it out",
        ),
        ("finding: F-07", "finding: {sdk: vendor}", "'finding' needs the key 'id'", ""),
        ("finding: F-07", "finding: {id: F-07, sdk: vendr}", "'sdk' must be one of standin, vendor", "'vendor'?"),
        # Cluster
        ("nodes: 2", "nodes: 3", "8 ranks cannot be spread evenly over 3 nodes", ""),
        ("data_parallel: 8", "data_parallel: 4", "model_parallel 1 x pipeline_stage 1 is 4, not 8 ranks", ""),
        ("shard_size: 4", "shard_size: 3", "optimizer_weight_shard_size 3 does not divide data_parallel 8", ""),
        ("enable_parallel_optimizer: true", "model_parallel: 1", "no effect without enable_parallel_optimizer", ""),
        # Job
        ("jobs/train.py", "/etc/passwd", "script '/etc/passwd' is an absolute path", "below the scenario file"),
        ("jobs/train.py", "jobs/../../x.py", "script 'jobs/../../x.py' leads out of the scenario's directory", ""),
        ("jobs/train.py", "..", "script '..' leads out of the scenario's directory", ""),
        ("jobs/train.py", "''", "script '' names no file", ""),
        ('{GLOG_v: "2"}', '{"A=B": x}', "'A=B' cannot name an environment variable", ""),
        ('{GLOG_v: "2"}', "{}\n  rank_variables: {RANK: SIZE}", "rank_variables has no effect without job.command", ""),
        ('{GLOG_v: "2"}', '{}\n  command: [go]\n  rank_variables: {RANK: "A B"}', "'A B' cannot name", ""),
        # Targets
        ("rank: ${victim}", "rank: 8", "rank 8 of 8: ranks are 0 to 7", ""),
        ("rank: ${victim}", "rank: -1", "'rank' must be at least 0, not -1", ""),
        ("rank: ${victim}", "ranks: [0, 8]", "rank 8 of 8: ranks are 0 to 7", ""),
        ("rank: ${victim}", "ranks: [0, 0]", "rank 0 is in the list twice", ""),
        ("rank: ${victim}", "ranks: []", "'ranks' must not be empty", ""),
        ("rank: ${victim}", "node: 2", "node 2 of 2: nodes are 0 to 1", ""),
        ("rank: ${victim}", "replica_group: 8", "replica group 8: 8 ranks cannot form so many groups", ""),
        ("rank: ${victim}", "{}", "a target needs one of the keys rank, ranks, node", ""),
        ("rank: ${victim}", "{rank: 1, node: 0}", "a target has exactly one key, this has 2: rank, node", ""),
        ("rank: ${victim}", "rank:", "'rank' has no value", ""),
        ("count: 2", "count: 4", "4 ranks cannot be drawn from the 3 in 'among'", ""),
        ("{count: 2, seed: 3, among: [0, 2, 4]}", "{count: 9}", "9 ranks cannot be drawn from 8 ranks", ""),
        ("among: [0, 2, 4]", "among: [0, 9]", "rank 9 of 8: ranks are 0 to 7", ""),
        # Triggers
        ("      step: 5\n", "", "'phase' needs 'step' beside it", ""),
        ("step: 5\n", "step: 11\n", "step 11 of 10: the job trains 10 steps", ""),
        ("{step: 10}", "{step: 11}", "step 11 of 10: the job trains 10 steps", ""),
        ("{step: 10}", "{}", "a trigger needs at least one of the keys step, phase", ""),
        ("rank: 3}}", "rank: 8}}", "rank 8 of 8: ranks are 0 to 7", ""),
        ("after: kill", "after: kil", "there is no fault 'kil'", "did you mean 'kill'?"),
        ("after: kill", "after: process.stop-2", "fault 'process.stop-2' cannot wait for itself", ""),
        ("after: kill", "healed: process.stop-2", "fault 'process.stop-2' cannot wait for itself", ""),
        ("- kind: process.stop", "- id: kill\n    kind: process.stop", "fault id 'kill' is taken by fault 1", ""),
        ("id: kill", "id: process.stop-2", "fault id 'process.stop-2' is taken by fault 1", ""),
        # Expectations
        ("{step: 5, ranks", "{step: 11, ranks", "step 11 of 10: the job trains 10 steps", ""),
        ("[0, 2, 3, 5]", "[0, 2, 3, 9]", "rank 9 of 8: ranks are 0 to 7", ""),
        ("[0, 2, 3, 5]", "[0, 2, 3, -5]", "'ranks[3]' must be at least 0, not -5", ""),
        ("among: [0, 2, 4]", "among: [0, -2]", "'among[1]' must be at least 0, not -2", ""),
        ("controller: outside", "timings: vender", "must be one of fast, vendor", "'vendor'?"),
        ("resume: none", "resume: {step: 11}", "step 11 of 10: the job trains 10 steps", ""),
    ],
)  # fmt: skip
def test_a_wrong_value_is_explained_at_its_place(
    problems: Problems, full: str, old: str, new: str, message: str, hint: str
) -> None:
    assert old in full
    before = full[: full.index(old)]
    text = full.replace(old, new.replace("{}", "{}"), 1)
    if new.startswith("{") and old == "rank: ${victim}":
        text = full.replace("target:\n      rank: ${victim}", f"target: {new}", 1)
    found = [p for p in problems(text) if message in p.message]
    assert found, [p.message for p in problems(text)]
    assert hint in found[0].hint
    assert abs(found[0].line - 1 - before.count("\n")) <= 10
    assert text.split("\n")[found[0].line - 1][found[0].column - 1 :].strip("'\"").startswith(found[0].text)


def test_the_sample_itself_is_right(load: Load, full: str) -> None:
    scenario = load(full).cells[0].scenario
    assert scenario.description == "Kill rank 1 at step.begin; costs $5, not ${5}"
    assert scenario.faults[1].trigger.any is not None
    assert scenario.faults[1].trigger.any[1].elapsed == 0.2
    assert scenario.expect.recovery is not None and scenario.expect.recovery.total == 90.0
    assert scenario.deadlines.run == 300.0 and scenario.deadlines.start == 180.0
    assert fault_ids(scenario.faults) == ("kill", "process.stop-2")


def test_every_problem_is_reported_with_line_text_and_caret(problems: Problems, minimal: str, tmp_path: object) -> None:
    text = minimal.replace("ranks: 4", "rnks: 4").replace("steps: 10", "steps: four") + "baselin: none\n"
    file = f"{tmp_path}/scenario.yaml"
    assert "\n".join(map(str, problems(text))) == (
        f"{file}:3:11: unknown key 'rnks'\n"
        "    cluster: {rnks: 4}\n"
        "              ^^^^\n"
        "    did you mean 'ranks'?\n"
        f"{file}:4:14: 'steps' must be a whole number, not text 'four'\n"
        "    job: {steps: four}\n"
        "                 ^^^^\n"
        f"{file}:5:1: unknown key 'baselin'\n"
        "    baselin: none\n"
        "    ^^^^^^^\n"
        "    did you mean 'baseline'?"
    )


def test_the_caret_stands_under_its_text_in_any_script(problems: Problems, minimal: str) -> None:
    (problem,) = problems(minimal + "expect: {mechanism: 机制}\n")
    excerpt, caret = str(problem).split("\n")[1:3]
    assert excerpt.index("机制") == caret.index("^") and caret.count("^") == 4


def test_a_long_line_is_shown_in_part(problems: Problems, minimal: str) -> None:
    padding = "".join(f"a{n}: 1s, " for n in range(1000))
    (problem,) = problems(minimal + f"expect: {{recovery: {{phases: {{{padding} b: 2x}}}}}}\n")
    assert all(len(line) < 200 for line in str(problem).split("\n")[1:])
    assert problem.excerpt[problem.caret :].startswith("2x")


def test_faults_that_wait_for_each_other_are_a_ring(problems: Problems, minimal: str) -> None:
    faults = "".join(
        f"- {{id: {name}, kind: process.kill, target: {{rank: 0}}, trigger: {{after: {after}}}}}\n"
        for name, after in [("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")]
    )
    messages = [p.message for p in problems(minimal + "faults:\n" + faults)]
    assert messages == [
        "fault 'a' can never fire: it waits for 'b', which waits for 'c', which waits for 'a'",
        "fault 'b' can never fire: it waits for 'c', which waits for 'a', which waits for 'b'",
        "fault 'c' can never fire: it waits for 'a', which waits for 'b', which waits for 'c'",
        "fault 'd' can never fire: it waits for 'a', which waits for 'b', which waits for 'c', which waits for 'a'",
    ]


def test_a_ring_with_a_way_out_is_allowed(load: Load, minimal: str) -> None:
    faults = (
        "- {id: a, kind: process.kill, target: {rank: 0}, trigger: {any: [{after: b}, {step: 3}]}}\n"
        "- {id: b, kind: process.kill, target: {rank: 1}, trigger: {after: a, elapsed: 1s}}\n"
    )
    assert len(load(minimal + "faults:\n" + faults).cells[0].scenario.faults) == 2


def test_thousands_of_faults_are_refused_and_a_thousand_are_quick(problems: Problems, load: Load, minimal: str) -> None:
    def schedule(count: int) -> str:
        return minimal + "faults:\n" + "".join(
            f"- {{id: f{n}, kind: process.kill, target: {{rank: 0}}, trigger: {{after: f{n + 1}}}}}\n"
            for n in range(count - 1)
        ) + f"- {{id: f{count - 1}, kind: process.kill, target: {{rank: 0}}, trigger: {{step: 1}}}}\n"  # fmt: skip

    assert len(load(schedule(1000)).cells[0].scenario.faults) == 1000
    assert any("'faults' must not have more than 1000 items" in p.message for p in problems(schedule(1001)))


def test_without_names_kinds_are_not_checked(write: Callable[..., str], full: str) -> None:
    loaded = load_scenario(write(full.replace("process.kill", "unheard.of")))
    assert loaded.cells[0].scenario.faults[0].kind == "unheard.of"


def test_parallel_sizes_default_to_data_parallelism(load: Load, minimal: str, full: str) -> None:
    assert effective_parallel(load(minimal).cells[0].scenario.cluster).data_parallel == 4
    assert effective_parallel(load(full).cells[0].scenario.cluster).optimizer_weight_shard_size == 4


def test_an_error_can_travel_between_processes(problems: Problems, minimal: str) -> None:
    error = ScenarioError(problems(minimal + "baselin: none\n"))
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_broken_file_stops_at_a_bounded_number_of_problems(problems: Problems, minimal: str) -> None:
    found = problems(minimal + "".join(f"key{n}: 1\n" for n in range(5000)))
    assert 100 <= len(found) <= 400
