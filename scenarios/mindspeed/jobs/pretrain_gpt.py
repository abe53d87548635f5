"""Starts pretrain_gpt.py of a checkout of MindSpeed-LLM, whose directory MINDSPEED_LLM names, with the same arguments.

It imports what it needs from the checkout; torch_npu, mindspeed and mindio_ttp come from the environment.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    checkout = os.environ.get("MINDSPEED_LLM")
    if not checkout:
        sys.exit("set MINDSPEED_LLM in job.environment to the directory of MindSpeed-LLM")
    sys.path.insert(0, checkout)
    runpy.run_path(str(Path(checkout) / "pretrain_gpt.py"), run_name="__main__")
