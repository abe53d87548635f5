"""The agent as a callback that MindFormers registers: what is imported already is hooked, wherever it was bound."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
CALLBACK = ROOT / "chaos" / "agent" / "callback"

# A stand-in for MindSpore that is imported, and bound by name elsewhere, before the agent comes.
FRAMEWORK = {
    "mindspore/__init__.py": "",
    "mindspore/train/__init__.py": "from mindspore.train.model import Callback, Model\n",
    "mindspore/train/model.py": (
        "class Callback:\n    pass\n"
        "class Model:\n    def train(self, epoch, data, callbacks=None):\n        return callbacks\n"
    ),
    "mindspore/train/serialization.py": (
        "def save_checkpoint(save_obj, ckpt_file_name, integrated_save=True, async_save=False, **more):\n    pass\n"
        "def load_checkpoint(ckpt_file_name, **more):\n    return {'weight': 1}\n"
    ),
    "job.py": (
        "import os, sys, importlib.util\n"
        "from mindspore.train import Model\n"
        "from mindspore.train.serialization import save_checkpoint, load_checkpoint as read\n"
        "spec = importlib.util.spec_from_file_location('copied', sys.argv[1])\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "callback = module.ChaosAgent()\n"
        "save_checkpoint({}, 'one.ckpt')\n"
        "read('one.ckpt')\n"
        "print([type(one).__name__ for one in Model().train(1, None, callbacks=[callback])])\n"
    ),
}


def run(place: Path, **environment: str) -> tuple[str, list[dict[str, object]]]:
    """Run the job with a copy of the callback's file, as MindFormers may; what it printed and the agent recorded."""
    for name, text in FRAMEWORK.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text, "utf-8")
    copy = place / "copy_of_chaos_agent.py"
    copy.write_bytes((CALLBACK / "chaos_agent.py").read_bytes())
    (place / "history").mkdir()
    configuration = {"run": "r", "attempt": "train", "history": str(place / "history")}
    (place / "agent.json").write_text(json.dumps(configuration), "utf-8")
    rank = {"MS_ROLE": "MS_WORKER", "MS_NODE_ID": "0", "MS_WORKER_NUM": "1"}
    variables = {"PATH": os.environ["PATH"], **rank, "REGISTER_PATH": str(CALLBACK), **environment}
    done = subprocess.run(
        [sys.executable, "-S", "job.py", str(copy)],
        cwd=place,
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line for file in (place / "history").iterdir() for line in file.read_text("utf-8").splitlines()]
    return done.stdout, [json.loads(line.strip("\0")) for line in lines if line.strip("\0")]


def test_what_was_imported_before_is_hooked_and_recorded(tmp_path: Path) -> None:
    printed, events = run(tmp_path, CHAOS_AGENT=str(tmp_path / "agent.json"))
    names = [event["event"] for event in events]
    assert {"checkpoint.begin", "checkpoint.end", "load.begin", "load.end"} <= set(names)
    assert printed.strip() == "['ChaosSteps', 'ChaosAgent']"


def test_without_a_harness_the_callback_does_nothing(tmp_path: Path) -> None:
    printed, events = run(tmp_path)
    assert printed.strip() == "['ChaosAgent']"
    assert events == []
