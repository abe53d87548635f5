"""The hooks in PyTorch's modules, set right after their import; nothing that the job can see changes.

Names are those of PyTorch 2.1 to 2.13, checked with 2.13.0. Where a release lacks one, its points are not seen.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any, Callable

from chaos.agent.after_import import AfterImport
from chaos.agent.torch.closures import closure_of, noting, with_closure
from chaos.agent.torch.compiled import hook_compiled_optimizers, is_tracing
from chaos.agent.torch.dcp import hook_dcp_loads, hook_dcp_saves
from chaos.agent.torch.files import Files, hook_names, hook_torch_files
from chaos.agent.torch.forward_gate import ForwardGate
from chaos.agent.torch.group import hook_group
from chaos.agent.torch.loop import TorchLoop
from chaos.agent.torch.optimizers import Optimizers
from chaos.agent.torch.replica_groups import hook_replica_groups
from chaos.agent.torch.scaler import hook_scaler
from chaos.agent.torch.weight_files import hook_opened_files, hook_weight_files
from chaos.agent.training import Training


def install_torch_hooks(imports: AfterImport, training: Training, loop: TorchLoop, optimizers: Optimizers) -> None:
    """Arrange for every hook to be set when its module is imported."""
    files = Files(training)
    atexit.register(files.settle)
    imports.watch("torch", functools.partial(_hook_optimizers, loop, optimizers))
    gate = ForwardGate(loop)
    imports.watch("torch", gate.hook)
    imports.watch("torch.autograd", functools.partial(_hook_backward, loop, gate))
    imports.watch("torch.utils.data.dataloader", functools.partial(_hook_batches, loop))
    for name in ("torch.amp.grad_scaler", "torch.cuda.amp.grad_scaler"):  # the second up to PyTorch 2.2
        imports.watch(name, functools.partial(hook_scaler, loop))
    imports.watch("torch.serialization", functools.partial(hook_torch_files, files))
    imports.watch("torch.serialization", lambda module: hook_names(files))
    imports.watch("safetensors", functools.partial(hook_opened_files, files))
    imports.watch("safetensors.torch", functools.partial(hook_weight_files, files))
    imports.watch("torch.distributed.checkpoint.state_dict_saver", functools.partial(hook_dcp_saves, files))
    imports.watch("torch.distributed.checkpoint.state_dict_loader", functools.partial(hook_dcp_loads, files))
    imports.watch("torch.distributed.distributed_c10d", functools.partial(hook_group, training))
    hook_replica_groups(imports, training, loop)


def _hook_optimizers(loop: TorchLoop, optimizers: Optimizers, torch: ModuleType) -> None:
    """Note every optimizer that is made, and wrap its step."""
    module = importlib.import_module("torch.optim.optimizer")  # torch.optim removes the name
    made = module.Optimizer.__init__

    @functools.wraps(made)
    def make_with_agent(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        optimizers.note(self)

    def before(optimizer: Any, args: Any, kwargs: Any) -> Any:
        if tracing():
            return None
        closure = closure_of(args, kwargs)
        loop.update_begins(optimizer, sys._getframe(1), closure=closure is not None)
        return closure and with_closure(args, kwargs, noting(loop.closures, loop, optimizer, closure))

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:
        if not tracing():
            loop.update_ends(optimizer)

    tracing = is_tracing(torch)
    module.Optimizer.__init__ = make_with_agent
    module.register_optimizer_step_pre_hook(before)
    module.register_optimizer_step_post_hook(after)
    hook_compiled_optimizers(loop, optimizers, torch)


def _hook_backward(loop: TorchLoop, gate: ForwardGate, module: Any) -> None:
    """See the losses: scalars whose gradient is computed. ``Tensor.backward`` calls ``torch.autograd.backward``.

    A call within a call is PyTorch's own: a part of the graph that is computed anew, or a tensor of another class.
    """
    backward: Callable[..., Any] = module.backward
    running = False

    @functools.wraps(backward)
    def backward_with_agent(tensors: Any, grad_tensors: Any = None, *args: Any, **kwargs: Any) -> Any:
        nonlocal running
        if running:
            return backward(tensors, grad_tensors, *args, **kwargs)
        running = True
        try:
            several = tuple(tensors) if isinstance(tensors, Iterable) and not hasattr(tensors, "numel") else (tensors,)
            if hasattr(grad_tensors, "numel") or grad_tensors is None:
                given: Any = (grad_tensors,) * len(several)
            else:
                given = tuple(grad_tensors)
            gradients = tuple(map(loop.backward, several, given))
            return backward(several, gradients, *args, **kwargs)
        except BaseException:
            loop.backward_failed()
            raise
        finally:
            running = False
            gate.open()

    module.backward = backward_with_agent


def _hook_batches(loop: TorchLoop, module: ModuleType) -> None:
    """See the batches that data loaders hand to the loop."""
    take: Callable[[Any], Any] = module._BaseDataLoaderIter.__next__

    @functools.wraps(take)
    def take_with_agent(self: Any) -> Any:
        batch = take(self)
        loop.batch(batch)
        return batch

    module._BaseDataLoaderIter.__next__ = take_with_agent
