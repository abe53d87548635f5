"""Hooks run right after a module was executed, in order, and the module is otherwise what it would have been."""

from __future__ import annotations

import importlib
import importlib.resources
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from chaos.agent.after_import import AfterImport


@pytest.fixture
def imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AfterImport]:
    """Hooks on modules of a package ``hooked`` that is on the path during the test."""
    package = tmp_path / "hooked"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "train.py").write_text("executed = True\ndef train():\n    return 'plain'\n")
    (package / "caller.py").write_text("from hooked.train import train\nresult = train()\n")
    (package / "broken.py").write_text("raise RuntimeError('the module itself is broken')\n")
    (package / "data.txt").write_text("data")
    monkeypatch.syspath_prepend(str(tmp_path))
    finder = AfterImport()
    finder.install()
    yield finder
    sys.meta_path.remove(finder)
    for name in [name for name in sys.modules if name.split(".")[0] == "hooked"]:
        del sys.modules[name]


def test_hooks_run_in_order_before_anyone_binds_a_name(imports: AfterImport) -> None:
    seen: list[str] = []

    def first(module: ModuleType) -> None:
        assert module.executed
        seen.append("first")
        module.train = lambda: "hooked"  # type: ignore[attr-defined]

    imports.watch("hooked.train", first)
    imports.watch("hooked.train", lambda module: seen.append("second"))
    assert importlib.import_module("hooked.caller").result == "hooked"
    assert seen == ["first", "second"]


def test_a_module_that_is_there_already_is_hooked_at_once(imports: AfterImport) -> None:
    module = importlib.import_module("hooked.train")
    seen: list[ModuleType] = []
    imports.watch("hooked.train", seen.append)
    assert seen == [module]


def test_other_modules_are_not_touched(imports: AfterImport) -> None:
    imports.watch("hooked.train", lambda module: None)
    spec = importlib.import_module("hooked.caller").__spec__
    assert spec is not None
    assert type(spec.loader).__name__ == "SourceFileLoader"


def test_source_resources_and_reload_work_as_before(imports: AfterImport) -> None:
    seen: list[str] = []
    imports.watch("hooked", lambda module: seen.append("package"))
    imports.watch("hooked.train", lambda module: seen.append("module"))
    module = importlib.import_module("hooked.train")
    assert "return 'plain'" in inspect.getsource(module)
    assert importlib.resources.files("hooked").joinpath("data.txt").read_text() == "data"
    importlib.reload(module)
    assert seen == ["package", "module", "module"]


def test_a_module_that_does_not_exist_still_does_not(imports: AfterImport) -> None:
    imports.watch("hooked.absent", lambda module: None)
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'hooked\.absent'"):
        importlib.import_module("hooked.absent")


def test_a_module_that_fails_fails_as_before(imports: AfterImport) -> None:
    seen: list[ModuleType] = []
    imports.watch("hooked.broken", seen.append)
    with pytest.raises(RuntimeError, match="the module itself is broken"):
        importlib.import_module("hooked.broken")
    assert seen == []
    assert "hooked.broken" not in sys.modules


def test_a_file_is_hooked_by_its_name_in_whatever_package_it_lies(imports: AfterImport) -> None:
    seen: list[str] = []
    importlib.import_module("hooked.train")
    for _ in range(2):  # an import that has been, and one to come
        imports.watch_file("train", lambda module: seen.append(module.__name__))
        imports.watch_file("caller", lambda module: seen.append(module.__name__))
    importlib.import_module("hooked.caller")
    assert seen == ["hooked.train", "hooked.train", "hooked.caller", "hooked.caller"]
