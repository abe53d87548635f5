"""``hold-gil``: makes a rank wait in C and keep the interpreter's lock, so none of its Python threads runs.

The proof is a witness: a thread that writes to the rank's record every 50 ms before, and no more afterwards. The SDK's
own threads are not Python and run on; its stand-in's are Python, so the plan refuses the kind beside mechanisms of the
SDK.

On Ascend: an extension that waits for the device, storage or a lock without releasing the GIL.
"""

from __future__ import annotations

from chaos.faults.rank_acts.hanging import Hanging

KIND = Hanging("hold-gil")
