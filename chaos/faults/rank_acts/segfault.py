"""``segfault``: makes a rank read at address 0; the kernel ends it with SIGSEGV.

No Python code runs any more: no handler, no ``finally``, no exit handler. A core image is not written.

On Ascend: a defect of an operator, of the driver's library or of a C++ extension.
"""

from __future__ import annotations

import signal

from chaos.faults.rank_acts.own_end import OwnEnd

KIND = OwnEnd("segfault", signal.SIGSEGV)
