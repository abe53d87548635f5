"""The loader of the agent in a rank, and of the sitecustomize that this one hides.

Python imports the first sitecustomize on its path, in every process of the job: msrun, scheduler and ranks. So this
file must stay harmless: without CHAOS_AGENT it only loads the hidden one. It never imports MindSpore.
"""

from __future__ import annotations

import os
import sys


def _load_agent(configuration: str) -> None:
    import types

    # The rank's Python may not have chaos installed, or another version of it: use exactly the tree this file is in,
    # without putting its parent directory (the harness's site-packages) on the job's path.
    tree = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    package = types.ModuleType("chaos")
    package.__path__ = [tree]
    sys.modules["chaos"] = package
    from chaos.agent.start import start

    start(configuration)


def _chain() -> None:
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    here = os.path.dirname(os.path.abspath(__file__))
    others = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != here]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    if os.environ.get("CHAOS_AGENT"):
        _load_agent(os.environ["CHAOS_AGENT"])
finally:
    _chain()
