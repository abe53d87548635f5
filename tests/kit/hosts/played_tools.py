"""The vendor's tools as programs that answer with their documented words, for the ranks that work below a folder.

A rank of an even number is on device 0 of its machine, one of an odd number on device 1.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.kit.runs.recorded import SEEDS

_NPU_SMI = """
import os
import sys
from pathlib import Path
if "-m" in sys.argv:
    print(Path(SEEDS, "npu_smi_mapping", "910b3.txt").read_text(), end="")
    raise SystemExit
pids = {}
for process in Path("/proc").glob("[0-9]*"):
    try:
        variables = dict(one.split("=", 1) for one in (process / "environ").read_text().split("\\0") if "=" in one)
        if (process / "cwd").resolve().is_relative_to(FOLDER) and "MS_NODE_ID" in variables:
            pids[int(variables["MS_NODE_ID"]) % 2] = process.name
    except OSError:
        continue
if sys.argv[1:] == ["set", "-t", "reset", "-i", "1", "-c", "0"]:
    if input() != "y":
        raise SystemExit("not confirmed")
    Path(FOLDER, "reset-1").write_text(pids[1])
    print("Are you sure?(Y/N)" + Path(SEEDS, "npu_smi_reset", "ok.txt").read_text(), end="")
    raise SystemExit
table = Path(SEEDS, "npu_smi_table", "910b2c-25.0.rc1.2.txt").read_text()
for device, old in enumerate(("33776", "33777")):
    table = table.replace(old, pids.get(device, old))
print(table, end="")
"""

_HCCN_TOOL = """
import sys
from pathlib import Path
down, said = Path(FOLDER, "down"), " ".join(sys.argv[1:])
if said == "-i 1 -link -s down":
    down.touch()
elif said == "-i 1 -cfg recovery":
    if not Path(FOLDER, "broken").exists():
        down.unlink(missing_ok=True)
elif said == "-i 1 -net_health -g":
    print("net health status:", "Fault" if down.exists() else "Success")
else:
    raise SystemExit(f"no such call: {said}")
"""


def write_tools(tools: Path, folder: Path) -> None:
    """Write npu-smi and hccn_tool. The link of card 1 is down while ``folder`` has a file ``down``, and cannot be
    recovered while it has a file ``broken``. A reset of device 1 takes it from the process that had it, whose PID is in
    the file ``reset-1`` then: such a process ends when it next uses its device, and not by the reset."""
    for name, text in (("npu-smi", _NPU_SMI), ("hccn_tool", _HCCN_TOOL)):
        write_tool(tools / name, f"SEEDS, FOLDER = {str(SEEDS)!r}, {str(folder)!r}\n{text}")


def write_tool(path: Path, text: str) -> None:
    """Write a program in Python."""
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
