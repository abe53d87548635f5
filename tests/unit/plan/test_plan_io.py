"""A plan survives its way through JSON unchanged, and text that is no plan is refused with the place that is wrong."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.plan.io import KEYS, PlanFormatError, as_data, dumps, loads
from chaos.plan.model import Plan
from chaos.plan.parts.checkpoint import PlannedCheckpoint
from chaos.plan.parts.equivalence import Equivalence
from chaos.plan.parts.explanation import Explanation
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.fault_tolerance import FaultTolerance
from chaos.plan.parts.identity import Identity
from chaos.plan.parts.layout import RankLayout
from chaos.plan.parts.response import Budget, Recovery, Response
from tests.kit.plans import plan_with

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

KILL = {
    "kind": "kill",
    "target": {"random": {"among": (1, 2)}},
    "trigger": {"any": ({"step": 6}, {"all": ({"elapsed": "1500ms"}, {"log": {"contains": "Zürich \x1b"}})})},
    "parameters": {"nested": [1, 2.5, {"a": None, "b": [True, "x"]}]},
}

ranks = st.lists(st.integers(0, 2**31), max_size=4).map(tuple)
bytes_of_paths = st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF)
names = st.text(st.characters(exclude_categories=["Co", "Cs"]) | bytes_of_paths, max_size=8)
numbers = st.floats(0, 1e6)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
faults = st.builds(
    PlannedFault,
    id=names,
    kind=names,
    ranks=ranks,
    trigger=st.dictionaries(names, plain, max_size=2),
    parameters=st.dictionaries(names, plain, max_size=2),
    seed=st.none() | st.integers(0, 2**63),
    line=st.none() | st.integers(1, 99),
)
checkpoints = st.builds(
    PlannedCheckpoint,
    step=st.none() | st.integers(0, 9),
    savers=ranks,
    entitled=st.dictionaries(st.integers(0, 99), ranks, max_size=3),
    directory=st.none() | names,
    files=st.dictionaries(st.integers(0, 99), names, max_size=3),
)
recoveries = st.builds(
    Recovery,
    mechanism=names,
    faults=st.just(("fault",)),
    step=st.none() | st.integers(0, 9),
    succeeds=st.booleans(),
    restarted=st.just(()),
    copied=ranks,
    reads_checkpoint=st.booleans(),
)
parts = {
    "identity": st.builds(Identity, scenario=names, source=names, cell=names),
    "layout": st.builds(RankLayout, replica_groups=st.lists(ranks, max_size=3).map(tuple)),
    "fault_tolerance": st.builds(FaultTolerance, protection=st.lists(names, max_size=2).map(tuple)),
    "response": st.builds(
        Response,
        budget=st.builds(Budget, total=st.none() | numbers, phases=st.dictionaries(names, numbers, max_size=2)),
        timings=names,
        recoveries=st.lists(recoveries, max_size=2).map(tuple),
    ),
    "equivalence": st.builds(Equivalence, baseline=names, loss_tolerance=numbers),
    "comparison": st.none(),
    "explanation": st.builds(
        Explanation,
        reasons=st.lists(names, max_size=2).map(tuple),
        lines=st.dictionaries(names, st.integers(1, 99), max_size=2),
    ),
}
plans = st.builds(Plan, faults=st.lists(faults, max_size=2).map(tuple), checkpoint=st.none() | checkpoints, **parts)


@given(plan=plans)
def test_any_plan_comes_back_equal(plan: Plan) -> None:
    assert loads(dumps(plan)) == plan


def test_the_keys_are_those_of_earlier_versions() -> None:
    assert " ".join(KEYS) == (
        "scenario source cell seed ranks nodes replica_groups faults mechanism checkpoint resumes resume_step "
        "last_step steps_per_epoch checkpoint_interval protection loss_tolerance baseline budget timings finding "
        "failing finding_sdk finding_always failing_with_vendor recoveries strategies recovery_options comparison "
        "restore group_info gradients loss_ranks shard comparable watch cleans_before_saving exit_code sink_size "
        "steps_per_update mean_tolerance state_tolerances false_alarm outdated_by every_rank_saves root_cause "
        "configured reasons lines"
    )


def test_a_key_under_its_older_name_is_read(plan: Planner) -> None:
    built = plan({**KILL})
    text = dumps(built).replace('"recovery_options"', '"aids"')
    assert loads(text) == built


def test_a_key_under_both_names_is_no_plan() -> None:
    text = dumps(plan_with())
    both = {**json.loads(text), "aids": json.loads(text)["recovery_options"]}
    with pytest.raises(PlanFormatError, match="aids: unknown key"):
        loads(json.dumps(both))


def test_every_field_of_a_part_is_a_key_and_no_two_share_a_name() -> None:
    bare = plan_with()
    parts = [(field.name, getattr(bare, field.name)) for field in fields(Plan)]
    whole = [name for name, part in parts if not is_dataclass(part)]
    assert whole == ["faults", "checkpoint", "comparison"]
    inner = [field.name for _, part in parts if is_dataclass(part) for field in fields(part)]
    assert Counter([*whole, *inner]) == Counter(KEYS)
    assert not {name for name, _ in parts}.intersection(inner)


def test_a_key_that_an_earlier_version_did_not_write_has_its_default() -> None:
    data = json.loads(dumps(plan_with()))
    added = KEYS[KEYS.index("failing") :]
    assert loads(json.dumps({name: value for name, value in data.items() if name not in added})) == plan_with()


def test_a_built_plan_comes_back_equal_down_to_the_types(plan: Planner, sharded: dict[str, Any]) -> None:
    built = plan({**KILL}, cluster=sharded, expect={"checkpoint": {"step": 4}})
    again = loads(dumps(built).encode())
    assert again == built
    assert repr(again) == repr(built)
    assert json.loads(dumps(built)) == json.loads(json.dumps(as_data(built)))


def test_a_plan_without_checkpoint_comes_back_equal(plan: Planner) -> None:
    built = plan()
    assert loads(dumps(built)) == built


def test_a_plan_of_an_online_repair_comes_back_equal(plan: Planner) -> None:
    fault = {"kind": "uce", "target": {"rank": 1}, "trigger": {"step": 5}}
    built = plan(fault, job={"protection": ("UCE",)})
    assert loads(dumps(built)) == built
    assert [recovery["step"] for recovery in json.loads(dumps(built))["recoveries"]] == [4]
    assert [recovery.step for recovery in loads(dumps(built)).response.recoveries] == [4]


def changed(plan: Planner, **changes: Any) -> str:
    data = json.loads(dumps(plan({"kind": "kill", "target": {"rank": 1}, "trigger": {"step": 6}})))
    for path, value in changes.items():
        part = data
        *way, last = path.split("__")
        for key in way:
            part = part[int(key) if key.isdecimal() else key]
        part[last] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ranks": "4"}, "ranks: Input should be a valid integer"),
        ({"ranks": 4.5}, "ranks: Input should be a valid integer"),
        ({"recoveries__0__step": 4.5}, "recoveries.0.step: Input should be a valid integer"),
        ({"resumes": 1}, "resumes: Input should be a valid boolean"),
        ({"replica_groups": [[0, "1"]]}, "replica_groups.0.1: Input should be a valid integer"),
        ({"checkpoint__files": {"a": "x"}}, "checkpoint.files.a.[key]: Input should be a valid integer"),
        ({"faults__0__kind": None}, "faults.0.kind: Input should be a valid string"),
        ({"extra": 1}, "extra: unknown key"),
        ({"checkpoint__extra": 1}, "checkpoint.extra: unknown key"),
        ({"faults__0__extra": 1}, "faults.0.extra: unknown key"),
        ({"budget__extra": 1}, "budget.extra: unknown key"),
    ],
)
def test_a_wrong_value_is_named_by_its_place(plan: Planner, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanFormatError) as error:
        loads(changed(plan, **changes))
    assert str(error.value).startswith("not a plan: ")
    assert message in str(error.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "3", '"plan"', "{}", '{"ranks": 4}', "[" * 100_000, b"\xff"])
def test_what_is_not_a_plan_is_refused(text: str | bytes) -> None:
    with pytest.raises(PlanFormatError, match=r"^not a plan: "):
        loads(text)


@pytest.mark.parametrize("key", KEYS[: KEYS.index("failing")])
def test_a_missing_key_is_named(plan: Planner, key: str) -> None:
    data = json.loads(changed(plan))
    del data[key]
    with pytest.raises(PlanFormatError, match=f"^not a plan: {key}: Field required"):
        loads(json.dumps(data))


def test_many_problems_are_shortened() -> None:
    with pytest.raises(PlanFormatError, match=r"and [0-9]+ more"):
        loads("{}")


@pytest.mark.parametrize("parameters", [{"a": (1, 2)}, {"a": {1: "x"}}, {"a": {1, 2}}, {"a": float("inf")}])
def test_parameters_that_json_would_change_are_refused_while_planning(
    plan: Planner, parameters: dict[str, Any]
) -> None:
    fault = {"kind": "kill", "target": {"rank": 1}, "trigger": {"step": 6}, "parameters": parameters}
    assert "parameters must be plain data" in plan.refused(fault)
