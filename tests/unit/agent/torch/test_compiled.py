"""Compiled models and updates are seen from outside: a hook that is traced is a part of the compiled code."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from chaos.agent.torch.compiled import hook_compiled_modules, hook_compiled_optimizers, is_tracing


class Loop:
    """A loop that notes what it sees."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def update_begins(self, optimizer: Any) -> None:
        self.seen.append(("begins", optimizer))

    def update_ends(self, optimizer: Any) -> None:
        self.seen.append(("ends", optimizer))


class Optimizer:
    """An optimizer whose update may raise."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def step(self) -> str:
        if self.error:
            raise self.error
        return "updated"


def compile_as_is(model: Any = None, **options: Any) -> Any:
    return model


def torch_with(loop: Loop, *made: Optimizer) -> Any:
    torch: Any = SimpleNamespace(compile=compile_as_is, optim=SimpleNamespace(Optimizer=Optimizer))
    hook_compiled_optimizers(loop, SimpleNamespace(alive=lambda: list(made)), torch)
    return torch


def test_an_update_that_is_compiled_is_seen() -> None:
    loop, optimizer = Loop(), Optimizer()
    update = torch_with(loop).compile(optimizer.step, backend="eager")
    assert update() == "updated"
    assert loop.seen == [("begins", optimizer), ("ends", optimizer)]


def test_an_update_that_a_scheduler_has_wrapped_before_is_seen() -> None:
    loop, optimizer, other = Loop(), Optimizer(), Optimizer()
    method = optimizer.step
    optimizer.step = lambda: method()  # type: ignore[method-assign]
    update = torch_with(loop, other, optimizer).compile(optimizer.step, backend="eager")
    assert update() == "updated"
    assert loop.seen == [("begins", optimizer), ("ends", optimizer)]


def test_anything_else_is_compiled_as_it_is() -> None:
    torch = torch_with(Loop())
    for target in (len, Optimizer, torch_with):
        assert torch.compile(target) is target


def test_a_module_that_is_compiled_in_place_is_seen_before_its_call() -> None:
    seen: list[Any] = []

    class Module:
        """A module, as far as it can be compiled in place."""

        _compiled_call_impl: Callable[..., Any] | None = None

        def call(self, number: int) -> int:
            seen.append("called")
            return number + 1

        def compile(self) -> None:
            self._compiled_call_impl = self.call

    nn: Any = SimpleNamespace(Module=Module)
    hook_compiled_modules(lambda module, inputs: seen.append((module, inputs)), nn)
    module = Module()
    module.compile()
    assert module._compiled_call_impl is not None
    assert module._compiled_call_impl(1) == 2
    assert seen == [(module, (1,)), "called"]


def test_a_release_without_the_question_traces_nothing_that_is_known() -> None:
    newest: Any = SimpleNamespace(compiler=SimpleNamespace(is_compiling=bool), _utils=SimpleNamespace())
    older: Any = SimpleNamespace(compiler=SimpleNamespace(), _utils=SimpleNamespace(is_compiling=bool))
    oldest: Any = SimpleNamespace(compiler=SimpleNamespace(), _utils=SimpleNamespace())
    assert is_tracing(newest) is bool
    assert is_tracing(older) is bool
    assert is_tracing(oldest)() is False
