"""The hooks that find a training loop of one's own in MindSpore: gradients, optimizers, compiled functions.

Gradients are computed by ``value_and_grad``, ``grad`` and ``GradOperation``. MindSpore compiles functions from their
source, so nothing that the job can call within a compiled function is replaced: the hooks are set below. Names are
those of MindSpore 2.10; where one is missing its points are not seen, and the job has to report its steps by lines.
"""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Callable

from chaos.agent.after_import import AfterImport
from chaos.agent.loops import Loop

_GRADIENTS = "mindspore.ops.composite.base"
_OPTIMIZERS = ("mindspore.nn.optim.optimizer", "mindspore.experimental.optim.optimizer")
_GRADIENT = "after_grad"
"""The name of every function that these modules return for a gradient; in graph mode it is compiled."""

_COUNTERS = ("global_step", "state_step", "step_t")
_FROM_MINUS_ONE = ("mindspore.mint.optim.adamw", "mindspore.mint.optim.fused_adamw")
"""The modules of optimizers with a counter that is -1 before the first update."""


class Optimizers:
    """MindSpore's optimizers of this process, in the order in which they were made."""

    def __init__(self) -> None:
        self._made: list[weakref.ref[Any]] = []

    def note(self, optimizer: Any) -> None:
        """Note that an optimizer is made."""
        self._made.append(weakref.ref(optimizer))

    def alive(self) -> list[Any]:
        """Return the optimizers that exist and that no other one contains: some wrap the one that does the work."""
        if sum(made() is not None for made in self._made) > 1:
            gc.collect()  # one that the job has replaced may only wait for this
        alive = [optimizer for made in self._made if (optimizer := made()) is not None]
        within = {id(cell) for optimizer in alive for _, cell in optimizer.cells_and_names() if cell is not optimizer}
        return [optimizer for optimizer in alive if id(optimizer) not in within]

    def updates(self, optimizer: Any) -> int | None:
        """Return the number of updates; None for an optimizer without a counter."""
        first = -1 if any(kind.__module__ in _FROM_MINUS_ONE for kind in type(optimizer).__mro__) else 0
        for name in _COUNTERS:
            counter: Any = getattr(optimizer, name, None)
            if hasattr(counter, "asnumpy"):
                return int(counter.asnumpy().reshape(-1)[0]) - first
        return None

    def state(self, optimizer: Any) -> list[tuple[str, Any]]:
        """Return all parameters of the optimizer, and of the networks that hold a weight of it."""
        parameters: dict[int, Any] = {}
        for cell in (*_networks(optimizer), optimizer):
            for parameter in cell.get_parameters():
                parameters.setdefault(id(parameter), parameter)
        named: dict[str, Any] = {}
        for number, parameter in enumerate(parameters.values()):
            named[parameter.name if parameter.name not in named else f"{number}.{parameter.name}"] = parameter
        return list(named.items())


def _networks(optimizer: Any) -> list[Any]:
    """Return the outermost networks that hold a weight of the optimizer: they hold running statistics, too."""
    weights = {id(weight) for weight in optimizer.parameters}
    base = next(kind for kind in reversed(type(optimizer).__mro__) if hasattr(kind, "cells_and_names"))
    holders: list[Any] = []
    within: set[int] = set()
    for cell in gc.get_objects():
        # By the type: the class of a proxy is that of its target.
        if not issubclass(type(cell), base) or cell is optimizer:
            continue
        if any(id(parameter) in weights for parameter in cell.get_parameters()):
            holders.append(cell)
            within.update(id(part) for _, part in cell.cells_and_names() if part is not cell)
    return [cell for cell in holders if id(cell) not in within]


def install_loop_hooks(imports: AfterImport, loop: Loop, optimizers: Optimizers) -> None:
    """Arrange for every hook to be set when its module is imported."""
    compiled = _CompiledFunctions(loop)
    imports.watch(_GRADIENTS, functools.partial(_hook_gradients, loop))
    imports.watch("mindspore.graph.api", compiled.hook)
    imports.watch("mindspore.graph._parse", compiled.hook_parser)
    for module in _OPTIMIZERS:
        imports.watch(module, functools.partial(_hook_optimizer, loop, optimizers))


def _hook_gradients(loop: Loop, module: ModuleType) -> None:
    """Wrap the forward run of a gradient that is computed without compilation."""
    forward = getattr(module, "_pynative_forward_run", None)
    if forward is None:
        return

    @functools.wraps(forward)
    def forward_with_agent(function: Any, sens_param: Any, *inputs: Any, **named: Any) -> Any:
        results: Any = None

        def compute() -> Any:
            nonlocal results
            results = forward(function, sens_param, *inputs, **named)
            return results[1]

        loop.gradient((*inputs, *named.values()), compute)
        return results

    module._pynative_forward_run = forward_with_agent  # type: ignore[attr-defined]


def _hook_optimizer(loop: Loop, optimizers: Optimizers, module: ModuleType) -> None:
    """Wrap the making and the calls of optimizers of this base class."""
    base = module.Optimizer
    make, call = base.__init__, base.__call__

    @functools.wraps(make)
    def make_with_agent(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        optimizers.note(self)

    @functools.wraps(call)
    def call_with_agent(self: Any, *args: Any, **kwargs: Any) -> Any:
        return loop.update(self, lambda: call(self, *args, **kwargs))

    base.__init__ = make_with_agent
    base.__call__ = call_with_agent


class _CompiledFunctions:
    """The functions that MindSpore compiles, each with the parameters that it uses."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._names: dict[str, list[str]] = {}
        self._gradients: set[str] = set()
        self._gradient_parsed = False

    def hook_parser(self, module: ModuleType) -> None:
        """Note when a gradient's function is compiled: the parameters do not tell it."""
        parse = getattr(module, "parse_cb", None)
        if parse is None:
            return

        @functools.wraps(parse)
        def parse_with_agent(function: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(function, "__name__", "") == _GRADIENT and function.__module__ == _GRADIENTS:
                self._gradient_parsed = True
            return parse(function, *args, **kwargs)

        module.parse_cb = parse_with_agent  # type: ignore[attr-defined]

    def hook(self, module: ModuleType) -> None:
        """Wrap the calls of compiled functions, and of networks in graph mode."""
        executor, cells = getattr(module, "_JitExecutor", None), getattr(module, "_CellGraphExecutor", None)
        # Another module has these names by import only.
        if executor is not None and executor.__module__ == module.__name__:
            self._hook_functions(executor)
        if cells is not None and cells.__module__ == module.__name__:
            self._hook_cells(cells)

    def _hook_functions(self, executor: Any) -> None:
        call, compile_ = executor.__call__, executor.compile

        @functools.wraps(call)
        def call_with_agent(self: Any, *args: Any, **kwargs: Any) -> Any:
            run = functools.partial(call, self, *args, **kwargs)
            return loop.compiled((*args, *kwargs.values()), run, functools.partial(_loss_first, self.fn))

        @functools.wraps(compile_)
        def compile_with_agent(self: Any, *args: Any, **kwargs: Any) -> Any:
            phase = compile_(self, *args, **kwargs)
            compiled(phase, self._graph_executor)
            return phase

        loop, compiled = self._loop, self._compiled
        executor.__call__ = call_with_agent
        executor.compile = compile_with_agent

    def _hook_cells(self, cells: Any) -> None:
        call, compile_ = cells.__call__, cells.compile

        @functools.wraps(call)
        def call_with_agent(self: Any, cell: Any, *args: Any, **kwargs: Any) -> Any:
            def run() -> Any:
                compiled(cell.phase_cache.get(cell.phase, ""), self._graph_executor)
                return call(self, cell, *args, **kwargs)

            return loop.compiled(args, run)

        @functools.wraps(compile_)
        def compile_with_agent(self: Any, cell: Any, *args: Any, **kwargs: Any) -> Any:
            result = compile_(self, cell, *args, **kwargs)
            parsed(result[0] if isinstance(result, tuple) else result)
            return result

        loop, compiled, parsed = self._loop, self._compiled, self._parsed
        cells.__call__ = call_with_agent
        cells.compile = compile_with_agent

    def _compiled(self, phase: str, graphs: Any) -> None:
        """Pass on what the function of this phase uses, before it is executed."""
        self._parsed(phase)
        if self._loop.awaits_names:
            if phase not in self._names:
                try:
                    self._names[phase] = list(graphs.get_params(phase))
                except Exception:  # of a MindSpore that cannot tell; the optimizer's count then shows an update
                    self._names[phase] = []
            self._loop.compiled_with(phase, self._names[phase], gradient=phase in self._gradients)

    def _parsed(self, phase: str) -> None:
        if self._gradient_parsed:
            self._gradients.add(phase)
            self._gradient_parsed = False


def _loss_first(function: Callable[..., Any], results: Any) -> Any:
    """Return the results of a compiled function as they begin with the loss; None where they hold only gradients."""
    if function.__name__ == _GRADIENT and function.__module__ == _GRADIENTS:
        return results if any(getattr(value, "get_value", False) for value in _enclosed(function)) else None
    return results


def _enclosed(function: Callable[..., Any]) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        yield cell.cell_contents
