"""Models and optimizers that ``torch.compile`` has compiled: their calls are seen, and nothing of them is traced.

A hook that is traced becomes a part of the compiled code: it breaks the graph, or the compilation fails. So hooks do
nothing while PyTorch traces, and the compiled call is seen from outside.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Protocol


class Loop(Protocol):
    """The loop that sees the calls."""

    def update_begins(self, optimizer: Any) -> None:
        """See that an optimizer begins to update."""

    def update_ends(self, optimizer: Any) -> None:
        """See that an update has ended."""


def is_tracing(torch: Any) -> Callable[[], bool]:
    """Return PyTorch's own question whether code is traced at present, which its tracer knows by the name."""
    asked: Callable[[], bool] | None = getattr(torch.compiler, "is_compiling", None) or getattr(
        torch._utils, "is_compiling", None
    )
    return asked or (lambda: False)


class Made(Protocol):
    """The optimizers that the script has made."""

    def alive(self) -> list[Any]:
        """Return those that exist."""


def hook_compiled_optimizers(loop: Loop, made: Made, torch: Any) -> None:
    """See the updates of ``torch.compile(optimizer.step)``."""
    compile_: Callable[..., Any] = torch.compile

    @functools.wraps(compile_)
    def compile_with_agent(model: Any = None, *args: Any, **kwargs: Any) -> Any:
        compiled = compile_(model, *args, **kwargs)
        optimizer = _optimizer_of(model, made, torch)
        if optimizer is None:
            return compiled

        @functools.wraps(compiled)
        def step_with_agent(*args: Any, **kwargs: Any) -> Any:
            loop.update_begins(optimizer)
            try:
                return compiled(*args, **kwargs)
            finally:
                loop.update_ends(optimizer)

        return step_with_agent

    torch.compile = compile_with_agent


def _optimizer_of(step: Any, made: Made, torch: Any) -> Any:
    """Return the optimizer whose ``step`` this is, None of anything else.

    A scheduler of the learning rate puts a function of its own in the optimizer, in place of the method.
    """
    optimizer = getattr(step, "__self__", None)
    if isinstance(optimizer, torch.optim.Optimizer):
        return optimizer if step.__name__ == "step" else None
    return next((held for held in made.alive() if vars(held).get("step") is step), None) if callable(step) else None


def hook_compiled_modules(before: Callable[[Any, Any], None], nn: Any) -> None:
    """See the calls of a module after ``Module.compile()``, which compiles the call with its hooks."""
    compile_: Callable[..., None] | None = getattr(nn.Module, "compile", None)
    if compile_ is None:
        return

    @functools.wraps(compile_)
    def compile_with_agent(self: Any, *args: Any, **kwargs: Any) -> None:
        compile_(self, *args, **kwargs)
        compiled = self._compiled_call_impl

        @functools.wraps(compiled)
        def call_with_agent(*inputs: Any, **named: Any) -> Any:
            before(self, inputs)
            return compiled(*inputs, **named)

        self._compiled_call_impl = call_with_agent

    nn.Module.compile = compile_with_agent
