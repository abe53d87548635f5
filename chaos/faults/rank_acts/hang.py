"""``hang``: makes the training thread of a rank wait in Python for something that never comes.

Its other threads run on, the SDK's heartbeat among them, and its connections stay open. With ``seconds`` no mechanism
may act.

On Ascend: a deadlock, a lock of a library that is never released, a queue that is never filled.
"""

from __future__ import annotations

from chaos.faults.rank_acts.hanging import Hanging

KIND = Hanging("hang")
