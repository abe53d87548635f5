"""``segfault``: makes a rank read at address 0; the kernel ends it with SIGSEGV, without a core image.

No Python code runs any more, not even ``finally``.

On Ascend: a defect of an operator, the driver or a C++ extension.
"""

from __future__ import annotations

import signal

from chaos.faults.rank_acts.own_end import OwnEnd

KIND = OwnEnd("segfault", signal.SIGSEGV)
