"""The jobs in which torchrun cannot start ranks again, or not in a way that can be planned, refused in the plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chaos.mechanisms.elastic.plan import NAME
from chaos.plan.problems import Problems
from chaos.plan.recovery.mechanism import SAVING
from chaos.plan.rules.constraints import Violation
from chaos.plan.schedule import Scheduled
from chaos.plan.traits import JobTraits
from chaos.scenario.models.scenario import Scenario

RECOVERY = "MindCluster, process-level online recovery, train_start.sh"


def check(scenario: Scenario, faults: Sequence[Scheduled], traits: JobTraits, problems: Problems) -> None:
    """Note why ELASTIC has no effect in this job, or an effect that this version does not plan."""
    if NAME not in scenario.job.protection:
        return
    restarts = any(fault.effect.stops_training for fault in faults)
    answered = (*_behind_save(scenario), *_store(scenario, traits)) if restarts else ()
    for violation in (*_launcher(scenario, traits), *answered):
        problems.add(violation.path, violation.message, text=violation.text, hint=violation.hint)


def _behind_save(scenario: Scenario) -> Iterator[Violation]:
    """Yield a restart behind an end-of-life checkpoint: the vendor's launch line may have it, and says no more."""
    saving = next((mechanism for mechanism in scenario.job.protection if mechanism in SAVING), None)
    if saving is not None:
        yield Violation(
            "job.protection",
            f"{NAME} behind {saving} is not yet supported by this version: the vendor's launch line may have "
            f"--max_restarts ({RECOVERY}), and its page does not say what follows an end-of-life checkpoint",
            text=NAME,
            hint=f"take {NAME} out: the job is then started again from the end-of-life checkpoint by a new launch; or "
            f"switch {NAME} on alone",
        )


def _launcher(scenario: Scenario, traits: JobTraits) -> Iterator[Violation]:
    """Yield why the launcher of the job does not start ranks again."""
    if traits.mechanisms is not None and NAME not in traits.mechanisms:
        return  # refused already
    if not traits.launcher_restarts:
        yield Violation(
            "job.protection",
            f"{NAME} is a restart by torchrun, and the launcher of job kind {scenario.job.kind!r} starts no rank again",
            text=NAME,
            hint="take it out, or use the job kind torch",
        )
    elif scenario.job.command is not None:
        yield Violation(
            "job.command",
            f"the options of this launcher say whether it starts ranks again, and how often, so {NAME} cannot be "
            "planned",
            text=" ".join(scenario.job.command)[:80],
            hint="leave job.command out, so that torchrun starts the ranks, or use job.supervised",
        )


def _store(scenario: Scenario, traits: JobTraits) -> Iterator[Violation]:
    """Yield the sharing of one store by all starts, unless the scenario shows what comes of it.

    The fault-free run of such a scenario names no finding, and restarts nothing.
    """
    options = scenario.job.torchrun
    if scenario.known is not None or not traits.lost_starts:
        return
    if options.rendezvous != "static" and options.store == "own":
        yield Violation(
            "job.python",
            traits.lost_starts,
            hint="use another release of PyTorch, or name a finding",
        )
    elif options.rendezvous != "static":
        yield Violation(
            "job.torchrun.store",
            f"{traits.lost_starts}: the new ranks fail to connect, or hang",
            text=options.store,
            hint="leave it out, so that each start has a store of its own, or name a finding",
        )
    else:
        yield Violation(
            "job.torchrun.rendezvous",
            f"with the static rendezvous {traits.lost_starts}: the new ranks hang, and no option gives them another",
            text=options.rendezvous,
            hint="use c10d, or name a finding",
        )
