"""The meaning of the parameters in a checkpoint, by their names.

Most names are those of MindSpore's optimizers and of ``save_checkpoint``: moments and accumulators carry the weight's
name behind a prefix, and so do accumulated gradients (``accu_grads`` in MindSpore, ``grad_sum`` in its tutorials);
counters and rates have names of their own; ``append_dict`` adds scalars about the save itself. A slot of an optimizer
of PyTorch is ``optimizer.KEY.N`` (:mod:`chaos.agent.torch.optimizers`), where it keeps the number of updates for each
weight, too.
"""

from __future__ import annotations

import re

from chaos.observe.checkpoints.appended import APPENDED

FLAG = "tft_g_one_flag"
"""Name (or its end) of the flag by which MindSpore's fault tolerance marks a consistent state: 1 when it is one."""

MAY_BE_ADDED = frozenset({"global_step", "loss_scale"})
"""Parameters that an end-of-life save adds even where network and optimizer hold no parameter of the name."""

_APPENDED = (APPENDED - MAY_BE_ADDED) | {"cur_epoch_num", "cur_step_num", "lr"}

_SLOT = re.compile(
    r"^(?:.*\.)?(?:moments?\d?|momentum|velocity|accum(?:ulation|ulator)?|adam_[mv]|exp_avg(?:_sq)?|mean_(?:square|gradient)"
    r"|stat|linear|sum|v_max|vhat)\.|^optimizer\d*\.(?!param_groups\.)[^.]+\."
)
_SETTING = re.compile(r"^optimizer\d*\.param_groups\.|^iteration$")
_OF_NO_MODULE = re.compile(r"^optimizer\d*\.parameter\.")
_UPDATES_OF_A_WEIGHT = re.compile(r"^optimizer\d*\.step\.")
_ACCUMULATED = re.compile(
    r"^(?:.*\.)?(?:accu?_grads?|accum(?:ulated)?_grads?|grads?_sum|grads?_accum(?:ulation|ulator)?s?)\."
)
_COUNTER = re.compile(
    r"^(?:.*\.)?(?:global_step|learning_rate|momentum|beta[12](?:_power)?|beta_?\d|eps|weight_decay|loss_scale|scale_sense"
    r"|current_iterator_step|last_overflow_iterator_step|decay_steps?)$"
)
_STEP_COUNTERS = frozenset({"global_step", "state_step", "step_t", "step", "num_batches_tracked"})
"""MindSpore's optimizers have the first three, PyTorch has the others; PyTorch's ``step`` is a float."""
_STATISTIC = re.compile(r"(?:^|\.)(?:moving_mean|moving_variance|running_mean|running_var)$")


def is_flag(name: str) -> bool:
    """Return whether this is the consistency flag.

    Its value says how the state was left and differs while a step runs.
    """
    return name == FLAG or name.endswith(f".{FLAG}")


def is_appended(name: str) -> bool:
    """Return whether the save added it: a fact about the save, not a parameter of network or optimizer."""
    return name in _APPENDED


def is_of_no_module(name: str) -> bool:
    """Return whether it is a weight of an optimizer of PyTorch that is in no module."""
    return bool(_OF_NO_MODULE.match(name))


def is_setting(name: str) -> bool:
    """Return whether a checkpoint of PyTorch has it beside the state: a setting of an optimizer, or the iteration."""
    return bool(_SETTING.match(name))


def is_slot(name: str) -> bool:
    """Return whether the optimizer keeps it for one weight: a moment or the like."""
    return bool(_SLOT.match(name))


def slot_prefix(name: str) -> str:
    """Return the prefix by which the name belongs to an optimizer's slot; an empty text for any other name."""
    match = _SLOT.match(name)
    return match[0] if match else ""


def is_step_counter(name: str) -> bool:
    """Return whether it is a number of updates: of the optimizer, or of running statistics."""
    return name.rpartition(".")[2] in _STEP_COUNTERS or bool(_UPDATES_OF_A_WEIGHT.match(name))


def is_accumulated(name: str) -> bool:
    """Return whether it holds the gradients of a weight that have been accumulated since the last update."""
    return bool(_ACCUMULATED.match(name))


def is_optimizer_state(name: str) -> bool:
    """Return whether the optimizer owns it: a slot for each weight, accumulated gradients, or a counter."""
    return bool(is_slot(name) or is_accumulated(name) or _COUNTER.match(name))


def is_weight(name: str) -> bool:
    """Return whether training moves it by gradients: neither optimizer state, running statistic, flag, nor appended."""
    return not (is_appended(name) or is_flag(name) or is_optimizer_state(name) or _STATISTIC.search(name))


def is_replicated(name: str) -> bool:
    """Return whether every rank of a replica group must hold the same value: weights and optimizer state.

    Running statistics follow each rank's own data.
    """
    return not (is_appended(name) or is_flag(name) or _STATISTIC.search(name))
