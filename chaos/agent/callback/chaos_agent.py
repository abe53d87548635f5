"""The agent where PYTHONPATH may not be used: a callback that MindFormers registers itself.

In the job's YAML: ``callbacks: [{type: ChaosAgent, auto_register: chaos_agent.ChaosAgent}]``, with the variable
REGISTER_PATH naming this directory (MindFormers 1.0 to 2.1). MindFormers may run a copy of this file, so the directory
is taken from that variable.

Callbacks are built after MindSpore and MindFormers have been imported, and after a resume has read the step of its
checkpoint. The imported modules are hooked then; earlier events are not recorded.
"""

from __future__ import annotations

import os
import sys
import types
from typing import Any

from mindspore.train import Callback

_SERIALIZATION = "mindspore.train.serialization"
_REBOUND = ("save_checkpoint", "load_checkpoint")


def _load_agent(configuration: str) -> None:
    if "chaos.agent.start" in sys.modules:
        return  # loaded by PYTHONPATH
    # As in sitecustomize: exactly the tree of this file, and nothing of it on the job's path.
    package = types.ModuleType("chaos")
    package.__path__ = [os.path.dirname(os.path.dirname(os.path.realpath(os.environ["REGISTER_PATH"])))]
    sys.modules["chaos"] = package
    from chaos.agent.start import start

    start(configuration)
    _rebind()


def _rebind() -> None:
    """Give the hooked functions to the modules that have imported the originals by name."""
    serialization: Any = sys.modules[_SERIALIZATION]
    for name in _REBOUND:
        hooked = getattr(serialization, name)
        bare = hooked.__wrapped__
        for module in list(sys.modules.values()):
            names = getattr(module, "__dict__", None) or {}
            for other in [key for key, value in list(names.items()) if value is bare]:
                setattr(module, other, hooked)


class ChaosAgent(Callback):  # type: ignore[misc]
    """A callback without actions of its own: it loads the agent, and ``Model.train`` adds the agent's callback."""

    def __init__(self) -> None:
        super().__init__()
        if os.environ.get("CHAOS_AGENT"):
            _load_agent(os.environ["CHAOS_AGENT"])
