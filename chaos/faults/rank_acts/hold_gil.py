"""``hold-gil``: makes a rank wait in C and keep the interpreter's lock, so none of its Python threads runs.

The vendor's SDK runs on. The stand-in's threads are Python, so the plan refuses the kind beside mechanisms of the SDK.

On Ascend: an extension that waits without releasing the GIL.
"""

from __future__ import annotations

from chaos.faults.rank_acts.hanging import Hanging

KIND = Hanging("hold-gil")
