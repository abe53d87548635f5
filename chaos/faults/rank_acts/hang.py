"""``hang``: makes the training thread of a rank wait in Python for something that never comes.

Its other threads run on, with the SDK's heartbeat, and its connections stay open. With ``seconds`` no mechanism may
act.

On Ascend: a deadlock.
"""

from __future__ import annotations

from chaos.faults.rank_acts.hanging import Hanging

KIND = Hanging("hang")
