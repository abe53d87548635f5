"""Where in a step a rank is lost decides which step is saved; ``pytest scenarios/`` shows that the job agrees."""

from __future__ import annotations

from tests.rehearsal.kit import Chaos

STEPS = {"step.begin": 4, "forward": 4, "allreduce.enter": 4, "optimizer.update": 5, "step.end": 5}


def test_each_phase_of_the_scenario_expects_its_step(fresh: Chaos) -> None:
    plans = fresh("plan", "kill-rank-phases.yaml", "--json").json["plans"]
    planned = {plan["faults"][0]["trigger"]["phase"]: plan["checkpoint"]["step"] for plan in plans}
    assert planned == STEPS
    assert {plan["cell"] for plan in plans} == {f"phase={phase}" for phase in STEPS}
