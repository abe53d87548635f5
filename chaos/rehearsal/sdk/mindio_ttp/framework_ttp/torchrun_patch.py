"""The vendor's edit of torchrun: a script that imports ``mindio_ttp.framework_ttp`` gives ranks longer to end.

torchrun sends SIGTERM to the ranks beside a failed one, and SIGKILL 30 s later, in the middle of a longer save. In a
process that has imported torchrun's parts before this package, the wait becomes TTP_NORMAL_ACTION_TIME_LIMIT.
Source: MindIO TFT with MindSpeed-LLM, configuration of torchrun.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, Callable

_MODULE = "torch.distributed.elastic.multiprocessing.api"
_VARIABLE = "TTP_NORMAL_ACTION_TIME_LIMIT"
_DEFAULT, _LEAST, _MOST = 180, 30, 1800


def apply() -> None:
    """Lengthen the wait of the torchrun of this process; nothing to do in a process without torchrun."""
    module = sys.modules.get(_MODULE)
    for name in ("MultiprocessContext", "SubprocessContext"):
        context = getattr(module, name, None)
        if context is not None:
            context._close = _patient(context._close)


def _patient(close: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(close)
    def close_later(self: Any, death_sig: Any, timeout: int = 30) -> Any:
        return close(self, death_sig, max(timeout, _limit()))

    return close_later


def _limit() -> int:
    value = os.environ.get(_VARIABLE, "")
    number = int(value) if value.isascii() and value.isdecimal() and len(value) < 5 else _DEFAULT
    return number if _LEAST <= number <= _MOST else _DEFAULT
