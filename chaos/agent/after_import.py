"""Call a function right after a module has been executed, before the importer binds any of the module's names."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Callable

Hook = Callable[[ModuleType], None]


class _HookedLoader(importlib.abc.Loader):
    """A loader that executes a module with the module's own loader, then runs the hooks."""

    def __init__(self, loader: importlib.abc.Loader, hooks: list[Hook]) -> None:
        self._loader = loader
        self._hooks = hooks

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        for hook in self._hooks:
            hook(module)

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)


class AfterImport(importlib.abc.MetaPathFinder):
    """A finder without modules of its own: other finders find a watched module, and this one wraps the loader."""

    def __init__(self) -> None:
        self._hooks: dict[str, list[Hook]] = {}
        self._by_file: dict[str, list[Hook]] = {}

    def install(self) -> None:
        """Put this finder before all others."""
        sys.meta_path.insert(0, self)

    def watch(self, module: str, hook: Hook) -> None:
        """Call ``hook(module)`` after the import of ``module``; at once when it is imported already."""
        if module in sys.modules:
            hook(sys.modules[module])
        else:
            self._hooks.setdefault(module, []).append(hook)

    def watch_file(self, name: str, hook: Hook) -> None:
        """Call ``hook(module)`` after the import of any module with this last name, whatever package it lies in."""
        self._by_file.setdefault(name, []).append(hook)
        for known, module in list(sys.modules.items()):
            if known.rpartition(".")[2] == name:
                hook(module)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        hooks = [*self._hooks.get(fullname, ()), *self._by_file.get(fullname.rpartition(".")[2], ())]
        if not hooks:
            return None
        for finder in sys.meta_path:
            if finder is self:
                continue
            find = getattr(finder, "find_spec", None)
            spec = find(fullname, path, target) if find else None
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _HookedLoader(spec.loader, hooks)
                return spec  # type: ignore[no-any-return]
        return None
