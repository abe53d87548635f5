"""The hook on the calls of modules, by which a step is seen to begin."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Callable

from chaos.agent.torch.compiled import hook_compiled_modules, is_tracing
from chaos.agent.torch.loop import TorchLoop


class ForwardGate:
    """The hook on the calls of all modules, set only while the next call of a model would tell anything.

    PyTorch calls every module in a slower way as long as there is such a hook. So it goes with the forward run of a
    step, and comes back with the backward run.
    """

    def __init__(self, loop: TorchLoop) -> None:
        self._loop = loop
        self._register: Callable[[Callable[[Any, Any], None]], Any] | None = None
        self._handle: Any = None
        self._is_tracing: Callable[[], bool] = bool
        self._records_gradients: Callable[[], bool] = bool

    def hook(self, torch: ModuleType) -> None:
        """See the calls of modules with weights, while gradients are recorded."""
        self._is_tracing, self._records_gradients = is_tracing(torch), torch._C.is_grad_enabled
        self._register = torch.nn.modules.module.register_module_forward_pre_hook
        hook_compiled_modules(self._before, torch.nn)
        self.open()

    def open(self) -> None:
        """See calls from now on."""
        if self._handle is None and self._register is not None:
            self._handle = self._register(self._before)

    def _before(self, called: Any, inputs: Any) -> None:
        loop = self._loop
        if self._is_tracing():
            return
        if not (called.training and self._records_gradients()):
            loop.evaluates()
        elif loop.awaits(called):
            loop.forward(called, inputs)
            if self._handle is not None and loop.begun_with(called):
                self._handle.remove()
                self._handle = None
