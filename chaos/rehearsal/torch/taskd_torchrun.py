"""torchrun under the stand-in of taskd: the cluster's agent controls the ranks, and may start a single one again.

In production taskd patches torchrun in the same place. The agent hosts the SDK's controller outside the ranks, and
obeys its strategies: a lost rank gets a new process, and the others live on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from importlib import import_module
from inspect import signature
from typing import Any, Callable

from chaos.rehearsal.taskd.agent import ClusterAgent
from chaos.rehearsal.taskd.settings import SettingsError, read_settings
from chaos.rehearsal.taskd.workers import ALL

_API = "torch.distributed.elastic.agent.server.api"
_PROCESSES = "torch.distributed.elastic.multiprocessing.api"


class TorchWorkers:
    """The processes of torchrun's agent, by the four functions that the cluster's agent asks a launcher for."""

    def __init__(self, agent: Any) -> None:
        self._agent = agent

    def functions(self) -> dict[str, Callable[..., Any]]:
        """Return the functions by their names."""
        return {
            "START_ALL_WORKER": self.start_all,
            "START_WORKER_LIST": self.start_again,
            "MONITOR": self.monitor,
            "KILL_WORKER": self.kill,
        }

    def start_all(self) -> int:
        """Start all ranks, as torchrun does. Returns 0, the success."""
        self._agent._initialize_workers(self._agent._worker_group)
        return 0

    def start_again(self, ranks: Collection[int]) -> int:
        """Start these ranks again with the arguments and the environment of their first start. Returns 0.

        torchrun starts a rank by another call in each release: 2.1 by the class, 2.13 by a function that takes more.
        """
        context, module = self._agent._pcontext, import_module(_PROCESSES)
        start = getattr(module, "get_subprocess_handler", module.SubprocessHandler)
        taken = signature(start).parameters
        for rank in ranks:
            given = {
                "entrypoint": context.entrypoint,
                "args": context.args[rank],
                "env": context.envs[rank],
                "stdout": context.stdouts[rank],
                "stderr": context.stderrs[rank],
                "local_rank_id": rank,
                "numa_options": getattr(context, "_numa_options", None),
            }
            context.subprocess_handlers[rank] = start(**{name: given[name] for name in given if name in taken})
        return 0

    def monitor(self, ranks: Collection[int]) -> dict[int, dict[str, Any]]:
        """Return process and exit status of every rank; none before the first start."""
        del ranks
        return {
            rank: {"pid": handler.proc.pid, "status": handler.proc.poll()} for rank, handler in self._handlers().items()
        }

    def kill(self, pids: Collection[int]) -> None:
        """Kill these processes, or all."""
        for handler in self._handlers().values():
            if list(pids) == [ALL] or handler.proc.pid in pids:
                handler.proc.kill()

    def _handlers(self) -> dict[int, Any]:
        context = self._agent._pcontext
        return {} if context is None else dict(context.subprocess_handlers)


def run_ranks(agent: Any, role: str = "default") -> Any:
    """Control the ranks to the end of the job, in torchrun's place. Ends the launcher where the job fails."""
    del role
    try:
        cluster_agent = ClusterAgent(read_settings(os.environ))
    except SettingsError as error:
        sys.exit(f"taskd: the cluster agent cannot start: {error}")
    for name, function in TorchWorkers(agent).functions().items():
        cluster_agent.register(name, function)
    code = cluster_agent.run()
    if code:
        sys.exit(code)
    api = import_module(_API)
    returned = {worker.global_rank: None for worker in agent._worker_group.workers}
    return api.RunResult(state=api.WorkerState.SUCCEEDED, return_values=returned, failures={})


def main() -> None:
    """Put the agent in torchrun's place, and run torchrun."""
    torchrun = import_module("torch.distributed.run")
    import_module(_API).SimpleElasticAgent._invoke_run = run_ranks
    torchrun.main()


if __name__ == "__main__":
    main()
