"""``abort``: makes a rank call abort(), as C++ does for an uncaught exception; the kernel ends it with SIGABRT.

A core image is not written.

On Ascend: ``terminate called after throwing …`` in MindSpore's or CANN's threads, a failed check, a corrupted heap.
"""

from __future__ import annotations

import signal

from chaos.faults.rank_acts.own_end import OwnEnd

KIND = OwnEnd("abort", signal.SIGABRT)
