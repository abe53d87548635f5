"""Writes the description of a run before it begins: scenario.yaml, plan.json, run.json."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from chaos.jobs.kind import Simulated
from chaos.machine.job.protocol import Platform
from chaos.plan import io
from chaos.plan.model import Plan
from chaos.platforms.nodes import NodePlatform, RecordsHosts
from chaos.run.made_with import ci_job, machine_facts, masked_values, own_code, recorded_command
from chaos.run.options import RunOptions
from chaos.run.prepare.measured_job import JOB, record_of
from chaos.run.prepare.prepared import Prepared
from chaos.run.prepare.versions import sdk_named
from chaos.scenario.models.scenario import Scenario
from chaos.store.directory import RunDirectory, update_run


class Description:
    """The common ground of a run and its baseline: they are made by the same call, with the same code.

    Args:
        prepared: the cell.
        platform: the platform on which its job is started.
        options: the options of the command line.
        versions: the versions of everything that decides losses and verdicts.
        cores: the numbers of the processor cores that the job has.
    """

    def __init__(
        self,
        prepared: Prepared,
        platform: Platform | NodePlatform,
        options: RunOptions,
        versions: Mapping[str, str],
        cores: tuple[int, ...],
    ) -> None:
        self._prepared = prepared
        self._platform = platform
        self._options = options
        self._versions = versions
        self._cores = cores
        self._code = own_code()

    def write(self, owned: RunDirectory, plan: Plan, scenario: Scenario, *, baseline: bool = False) -> None:
        """Describe one run; ``scenario`` is the cell's, or that of its fault-free run (``baseline``)."""
        (owned.path / "scenario.yaml").write_text(self._prepared.loaded.text, "utf-8")
        write_plan(owned, plan)
        simulated = self._simulated(scenario)
        update_run(
            owned.path,
            scenario=plan.identity.scenario,
            source=plan.identity.source,
            cell=plan.identity.cell,
            seed=plan.training.seed,
            versions=self._versions,
            **{JOB: record_of(self._prepared)},
            platform=scenario.cluster.platform,
            sdk=sdk_named(simulated),
            simulated=[{"part": part.part, "layer": part.layer} for part in simulated],
            baseline=baseline,
            call={"number": self._options.number, "of": self._options.of},
            command=recorded_command(self._options.arguments),
            variables=masked_values(self._prepared.cell.values),
            cores=list(self._cores),
            machine=machine_facts(),
            code=self._code,
            ci=ci_job(os.environ),
            hosts=self._hosts(scenario),
        )

    def _simulated(self, scenario: Scenario) -> list[Simulated]:
        return [
            *self._prepared.registered.job.simulated(scenario, self._prepared.sdk),
            *self._simulated_nodes(scenario),
        ]

    def _simulated_nodes(self, scenario: Scenario) -> Iterator[Simulated]:
        if isinstance(self._platform, NodePlatform):
            part = self._platform.simulated(scenario.cluster.nodes)
            if part is not None:
                yield Simulated(part, "platform")

    def _hosts(self, scenario: Scenario) -> list[dict[str, Any]]:
        if not isinstance(self._platform, RecordsHosts):
            return []
        directory = self._prepared.loaded.path.parent
        return [dict(host) for host in self._platform.hosts_as_given(scenario, directory)]


def write_plan(owned: RunDirectory, plan: Plan) -> str:
    """Write plan.json and return its fingerprint."""
    path = owned.path / "plan.json"
    path.write_text(io.dumps(plan), "utf-8")
    return io.fingerprint(path.read_bytes())
