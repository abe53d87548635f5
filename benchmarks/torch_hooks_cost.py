"""What the agent adds to a step in PyTorch and in MindSpore: the same loop with and without the agent, in turn.

Run: ``python benchmarks/torch_hooks_cost.py``, on a machine that does nothing else. Each process trains blocks of steps
without digests, and its fastest block counts. Prints the processor time that the agent adds to a step of the main
thread, in µs and as a multiple of what a line of JSON takes. Ends with 1 when a step of PyTorch costs half as much
again as one of MindSpore. Single processes differ by more than the agent costs, so the fastest of five counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import chaos

PAIRS = 5
MODULES = 24
"""Modules that a forward run calls, with a weight and a bias each."""

TIMES = """\
import json, sys, time
MODULES, BLOCK, BLOCKS = int(sys.argv[1]), 20, 100
def lines(number=2000):
    began = time.thread_time_ns()
    for step in range(number):
        json.dumps({"event": "step.begin", "mono": began, "step": step, "rank": 0})
    return (time.thread_time_ns() - began) / 1000 / number
taken = []
def block_ends(last=[None]):
    now = time.thread_time_ns()
    if last[0] is not None:
        taken.append((now - last[0]) / 1000 / BLOCK)
    last[0] = now
"""

LOOPS = {
    "PyTorch": """\
import torch
from torch import nn
torch.set_num_threads(1)
model = nn.Sequential(*(nn.Linear(8, 8) for _ in range(MODULES)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs = torch.randn(4, 8)
for step in range(BLOCK * BLOCKS):
    optimizer.zero_grad()
    model(inputs).sum().backward()
    optimizer.step()
    if step % BLOCK == 0:
        block_ends()
""",
    "MindSpore": """\
import numpy
import mindspore
from mindspore import nn
from mindspore.train import Callback, Model
mindspore.set_context(mode=mindspore.GRAPH_MODE)
class Blocks(Callback):
    def on_train_step_end(self, run_context):
        if run_context.original_args().cur_step_num % BLOCK == 0:
            block_ends()
row = numpy.ones((8,), "float32")
data = mindspore.dataset.GeneratorDataset([(row, row)] * 4 * BLOCK * BLOCKS, ["inputs", "labels"], shuffle=False)
network = nn.SequentialCell(*(nn.Dense(8, 8) for _ in range(MODULES)))
model = Model(network, nn.MSELoss(), nn.SGD(network.trainable_params(), 0.01))
model.train(1, data.batch(4), callbacks=[Blocks()], dataset_sink_mode=False)
""",
}

PLACES = {
    "PyTorch": {
        "RANK": "0",
        "WORLD_SIZE": "1",
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "TORCHELASTIC_RUN_ID": "cost",
    },
    "MindSpore": {"MS_ROLE": "MS_WORKER", "MS_NODE_ID": "0", "MS_WORKER_NUM": "1"},
}


def measure(directory: Path, framework: str, *, agent: bool) -> tuple[float, float]:
    """Return the microseconds of a step and of a line of JSON in a process of its own."""
    environment = dict(os.environ)
    if agent:
        (directory / "history").mkdir(exist_ok=True)
        configuration = directory / "agent.json"
        values = {"run": "cost", "attempt": "train", "history": str(directory / "history"), "digest_interval": 0}
        configuration.write_text(json.dumps(values))
        package = Path(chaos.__file__).parent
        paths = os.pathsep.join(map(str, (package / "agent" / "site", package.parent)))
        environment.update(PLACES[framework], CHAOS_AGENT=str(configuration), PYTHONPATH=paths)
    script = TIMES + LOOPS[framework] + "print(min(taken), min(lines() for _ in range(10)))\n"
    done = subprocess.run(
        [sys.executable, "-c", script, str(MODULES)],
        cwd=directory,
        env=environment,
        check=True,
        timeout=600,
        capture_output=True,
        text=True,
    )
    step, line = map(float, done.stdout.split()[-2:])
    return step, line


def cost(directory: Path, framework: str) -> float:
    """Return what the agent adds to a step, in µs: the fastest process with it less the fastest without."""
    pairs = [[measure(directory, framework, agent=agent) for agent in (False, True)] for _ in range(PAIRS)]
    without, with_agent = (min(pair[place][0] for pair in pairs) for place in (0, 1))
    line = min(line for pair in pairs for _, line in pair)
    added = with_agent - without
    print(f"{framework}: {added:.1f} µs on a step of {without:.0f} µs, {added / line:.1f} lines of JSON")
    return added


def main() -> int:
    """Measure both frameworks, and compare."""
    with tempfile.TemporaryDirectory() as directory:
        torch, mindspore = (cost(Path(directory), framework) for framework in LOOPS)
    print(f"{torch / mindspore:.2f} times as much in PyTorch")
    return 0 if torch <= 1.5 * mindspore else 1


if __name__ == "__main__":
    sys.exit(main())
