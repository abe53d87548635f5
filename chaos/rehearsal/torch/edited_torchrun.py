"""torchrun with the line that the vendor's guide adds to its script: it imports ``mindio_ttp.framework_ttp``.

The import lengthens the time between SIGTERM and SIGKILL of the other ranks, once a rank has failed.
"""

from __future__ import annotations

from importlib import import_module


def main() -> None:
    """Import torchrun, then the SDK, and run the first."""
    torchrun = import_module("torch.distributed.run")
    import_module("mindio_ttp.framework_ttp")
    torchrun.main()


if __name__ == "__main__":
    main()
