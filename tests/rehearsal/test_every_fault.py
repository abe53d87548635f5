"""Every registered fault lands with evidence, heals, and heals after the harness was killed while it made it.

The scenarios are the shipped ones, so a new kind is tested by the one that it comes with; a kind without one fails
tests/contract/test_every_kind_is_shown.py. Those of a cluster are shown in
tests/cluster/test_every_cluster_fault.py.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from chaos.doctor import Machine, probe
from chaos.run.prepare.known_failure import failing_checks, holding, sdk_of
from chaos.run.prepare.needs import needs_of_scenario
from tests.kit.every_fault import Shown, in_clusters, kinds, shown_by
from tests.rehearsal.endings.test_heal_after_sigkill import assert_healed
from tests.rehearsal.kit import Chaos, Done, checks_of, said

Once = Callable[[str, Callable[[Chaos], Done]], Done]
PROMISES = ("it lands", "it heals", "it heals after SIGKILL")

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize("kind", [kind for kind in kinds() if kind in shown_by() and kind not in in_clusters()])
@pytest.mark.parametrize("promise", PROMISES)
def test_every_fault_keeps_its_promises(promise: str, kind: str, once: Once, chaos: Chaos) -> None:
    shown = shown_by()[kind]
    lacking = [
        f"{candidate.need}: {candidate.seen}"
        for candidate in probe(needs_of_scenario(shown.scenario), Machine())
        if not candidate.ok
    ]
    if lacking:
        pytest.skip(f"this machine lacks {', '.join(lacking)}")
    cell = ("--cell", shown.cell) if shown.cell else ()
    if promise == PROMISES[2]:
        _heals_after_sigkill(chaos, kind, shown, cell)
        return
    done = once(f"every-fault-{shown.path.stem}-{shown.cell}", lambda own: own.run(shown.path, *cell))
    result = done.run.result
    if promise == PROMISES[0]:
        landed = done.run.history.select("fault.landed", kind=kind)
        assert landed and all(event.data["evidence"] for event in landed), said(result["checks"])
        assert checks_of(result, "pass"), done.errors
        assert [
            check for check in result["checks"] if check["name"] == "injection" and check["verdict"] != "pass"
        ] == []
    else:
        # Of a kind that only a known defect of the system under test is shown with, the run is to fail by that.
        known = holding(shown.scenario, [sdk_of(result)])
        code = 0 if known is None else 1
        assert done.code == code, said([check for check in result["checks"] if check["verdict"] != "pass"])
        assert set(failing_checks([result])) <= set(() if known is None else shown.scenario.failing)
        assert done.run.history.select("fault.healed")
        assert done.run.left() == []


def _heals_after_sigkill(chaos: Chaos, kind: str, shown: Shown, cell: tuple[str, ...]) -> None:
    """The harness is killed between the note of how the fault is undone and the act, or just after the act."""
    harness = chaos.start_run(shown.path, *cell)
    run = harness.run(shown.scenario.name)
    harness.event(run, "fault.injecting", kind=kind)
    harness.signal(signal.SIGKILL)
    harness.end()
    healed = chaos.heal()
    assert (healed.code, healed.json["healed"]) == (0, True), healed.output
    assert_healed(chaos)
