"""``abort``: makes a rank call abort(); the kernel ends it with SIGABRT, without
a core image.

On Ascend: a failed check or an uncaught exception in MindSpore or CANN.
"""

from __future__ import annotations

import signal

from chaos.faults.rank_acts.own_end import OwnEnd

KIND = OwnEnd("abort", signal.SIGABRT)
