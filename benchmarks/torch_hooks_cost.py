"""What the agent's hooks add to a step of a loop in PyTorch: the same process with and without the agent, in turn.

Run: ``python benchmarks/torch_hooks_cost.py``, on a machine that does nothing else. Each process trains blocks of steps
without digests, and its fastest block counts. Prints the difference in µs of processor time a step, as a share of the
step, and as a multiple of a line of JSON in the same process. Ends with 1 when it exceeds the limit.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from hooks_cost import LIMIT_US

import chaos

PAIRS = 5
MODULES = 24
"""Modules that a forward run calls; the agent looks at each call."""

LOOP = """\
import json, sys, time, torch
from torch import nn
torch.set_num_threads(1)
model = nn.Sequential(*(nn.Linear(8, 8) for _ in range(int(sys.argv[1]) - 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs = torch.randn(4, 8)
def steps(number=20):
    began = time.thread_time_ns()
    for _ in range(number):
        optimizer.zero_grad()
        model(inputs).sum().backward()
        optimizer.step()
    return (time.thread_time_ns() - began) / 1000 / number
def lines(number=2000):
    began = time.thread_time_ns()
    for step in range(number):
        json.dumps({"event": "step.begin", "mono": began, "step": step, "rank": 0})
    return (time.thread_time_ns() - began) / 1000 / number
steps()
print(min(steps() for _ in range(200)), min(lines() for _ in range(10)))
"""


def measure(directory: Path, *, agent: bool) -> tuple[float, float]:
    """Microseconds of a step, and of a line of JSON, in a process of its own."""
    environment = {**os.environ, "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    environment.update(TORCHELASTIC_RUN_ID="cost", MASTER_ADDR="127.0.0.1", MASTER_PORT="1")
    if agent:
        history = directory / "history"
        history.mkdir(exist_ok=True)
        configuration = directory / "agent.json"
        values = {"run": "cost", "attempt": "train", "history": str(history), "digest_interval": 0}
        configuration.write_text(json.dumps({**values, "extensions": ["chaos.agent.torch.interface"]}))
        package = Path(chaos.__file__).parent
        environment.update(
            CHAOS_AGENT=str(configuration),
            PYTHONPATH=os.pathsep.join(map(str, (package / "agent/site", package.parent))),
        )
    done = subprocess.run(
        [sys.executable, "-c", LOOP, str(MODULES)],
        env=environment,
        check=True,
        timeout=600,
        capture_output=True,
        text=True,
    )
    step, line = map(float, done.stdout.split())
    return step, line


def main() -> int:
    """Measure in turn, print, and compare with the limit."""
    added: list[float] = []
    with tempfile.TemporaryDirectory() as directory:
        for _ in range(PAIRS):
            without, line = measure(Path(directory), agent=False)
            with_agent, _ = measure(Path(directory), agent=True)
            added.append(with_agent - without)
            print(
                f"{added[-1]:6.1f} µs a step of {without:.0f} µs ({added[-1] / without:.1%}), "
                f"{added[-1] / line:.1f} lines of JSON ({line:.1f} µs each)"
            )
    good = statistics.median(added) < LIMIT_US
    print(f"{MODULES} modules, limit {LIMIT_US:g} µs: {'kept' if good else 'exceeded'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
