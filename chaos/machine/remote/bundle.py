"""The remote helper as one file that any Python from 3.9 on can run: ``python remote_helper.pyz``."""

from __future__ import annotations

import io
import zipfile
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parents[2]
MODULES = (
    "agent/launcher/rank_variables.py",
    "agent/launcher/torchrun.py",
    "agent/unproven.py",
    "base/clock.py",
    "base/walking.py",
    "machine/remote/connecting.py",
    "machine/remote/listening.py",
    "machine/remote/network.py",
    "machine/remote/packages.py",
    "machine/remote/program.py",
    "machine/remote/processes_in_directory.py",
    "machine/remote/tools.py",
    "machine/remote/wire.py",
    "machine/job/ending.py",
    "machine/job/local.py",
    "machine/job/processes.py",
    "machine/job/programs.py",
    "machine/job/protocol.py",
    "machine/job/launcher_environment.py",
    "machine/linux/children.py",
    "machine/linux/commands.py",
    "machine/linux/masking.py",
    "machine/linux/net/port_probe.py",
    "machine/linux/net/attributes.py",
    "machine/linux/net/connected.py",
    "machine/linux/net/connections.py",
    "machine/linux/net/echo.py",
    "machine/linux/net/ifb_delay.py",
    "machine/linux/net/netfilter.py",
    "machine/linux/net/netlink.py",
    "machine/linux/net/ports.py",
    "machine/linux/pidfd.py",
    "machine/linux/process.py",
    "machine/linux/procfs.py",
)
"""Files of the package ``chaos`` that the remote helper consists of: standard library only, Python 3.9."""

BUNDLE = "remote_helper.pyz"
"""Name of the file in a run's private directory."""

EARLIER_BUNDLE = "hand.pyz"
"""Its name in the directories of runs of an earlier release."""

_MAIN = "from chaos.machine.remote.program import main\n\nmain()\n"
_BEGINNING_OF_TIME = (1980, 1, 1, 0, 0, 0)


@cache
def bundle() -> bytes:
    """Return the bundle, the same bytes for the same sources."""
    packages = sorted({parent for name in MODULES for parent in Path("chaos", name).parents if parent.name})
    files = {str(package / "__init__.py"): b"" for package in packages}
    files |= {f"chaos/{name}": (_PACKAGE / name).read_bytes() for name in MODULES}
    files["__main__.py"] = _MAIN.encode()
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, _BEGINNING_OF_TIME), content, zipfile.ZIP_DEFLATED)
    return whole.getvalue()


def write_bundle(private: Path) -> Path:
    """Write the bundle to a run's private directory."""
    path = private / BUNDLE
    path.write_bytes(bundle())
    return path


def bundle_in(private: Path) -> Path:
    """Return the bundle in a run's private directory, also for a run of an earlier release."""
    path, earlier = private / BUNDLE, private / EARLIER_BUNDLE
    return earlier if earlier.exists() and not path.exists() else path


_LOADER = (
    "import os,runpy,sys\n"
    "n=int(sys.argv[1]);d=b''\n"
    "while len(d)<n:\n"
    " c=os.read(0,n-len(d))\n"
    " if not c: sys.exit('the remote helper came in half')\n"
    " d+=c\n"
    "f=os.memfd_create('remote_helper.pyz')\n"
    "while d: d=d[os.write(f,d):]\n"
    "runpy.run_path('/proc/self/fd/%d'%f,run_name='__main__')\n"
)
"""Reads the remote helper from its input and becomes it: the image needs nothing but Python.

The helper stays in unnamed memory, so that nothing of it remains on its node, however it ends.
"""


def helper_argv(python: str) -> tuple[str, ...]:
    """Return the command line of a remote helper whose code is sent to it afterwards."""
    return (python, "-I", "-c", _LOADER, str(len(bundle())))
