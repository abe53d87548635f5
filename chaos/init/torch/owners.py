"""The library that a save or a load in a script belongs to: the same words are names of several."""

from __future__ import annotations

import ast

from chaos.init.source import Call, calls, full_name, imports, last_word

LIGHTNING = frozenset({"lightning", "pytorch_lightning"})
"""A library of PyTorch with a ModelCheckpoint of its own."""

_OF_MINDSPORE = {"save_checkpoint", "load_checkpoint", "ModelCheckpoint"}
"""Names of MindSpore that Lightning has, too."""

OF_ACCELERATE = {"save_state": "accelerate", "load_state": "accelerate"}
"""Methods of accelerate's Accelerator: all ranks call them, and rank 0 writes most of the directory."""

_DCP = "torch.distributed.checkpoint"
"""The module whose saves and loads are those of all ranks, in a directory."""


def assigned_name(call: Call) -> str:
    """Return the name that the result of a call is assigned to; nothing where there is none."""
    parent = call.source.parents.get(call.node)
    target = parent.targets[0] if isinstance(parent, ast.Assign) else None
    return target.id if isinstance(target, ast.Name) else ""


def is_of_torch(call: Call) -> bool:
    """Return whether a save or a load is one of PyTorch's own, or of a library that hands it on."""
    owner = call.node.func
    of_torch = isinstance(owner, ast.Attribute) and isinstance(owner.value, ast.Name) and owner.value.id == "torch"
    return of_torch or is_of_dcp(call) or is_of_fabric(call)


def is_of_dcp(call: Call) -> bool:
    """Return whether a save or a load is that of a directory by all ranks."""
    return full_name(call.node.func, call.source).rpartition(".")[0] in (_DCP, f"{_DCP}.state_dict_saver")


def is_of_fabric(call: Call) -> bool:
    """Return whether a save or a load is that of a ``Fabric``, by the name that it is assigned to."""
    owner = call.node.func.value if isinstance(call.node.func, ast.Attribute) else None
    if owner is None or not imports(call.source) & LIGHTNING:
        return False
    fabrics = {assigned_name(made) for made in calls(call.source) if made.name == "Fabric"} - {""}
    return last_word(owner) in fabrics


def is_of_others(call: Call) -> bool:
    """Return whether a call means another library than the one that is known by its name."""
    if call.name in OF_ACCELERATE:
        return OF_ACCELERATE[call.name] not in imports(call.source)
    return call.name in _OF_MINDSPORE and bool(imports(call.source) & LIGHTNING)
