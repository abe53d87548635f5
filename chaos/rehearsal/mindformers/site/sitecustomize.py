"""Loads the kernels that a CPU lacks, where the agent comes as a callback; then the module that this file hides.

Callbacks are built when the modules that use the kernels are imported already. So the kernels load by themselves, in
every process of the job, without the agent: the modules are loaded under names of their own, and nothing of the package
``chaos`` is imported. Only the callback loads the agent.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

_HERE = os.path.dirname(os.path.abspath(__file__))
_ROOM = os.path.dirname(_HERE)
_TREE = os.path.dirname(os.path.dirname(_ROOM))


def _load(name: str, *path: str) -> ModuleType:
    spec = spec_from_file_location(name, os.path.join(*path))
    assert spec is not None and spec.loader is not None
    # MindSpore's compiler looks up the source of a cell by its module.
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _install_kernels() -> None:
    imports = _load("rehearsed_imports", _TREE, "agent", "after_import.py").AfterImport()
    imports.install()
    _load("rehearsed_kernels", _ROOM, "kernels.py").install(imports.watch)


def _chain() -> None:
    others = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != _HERE]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    _install_kernels()
finally:
    _chain()
