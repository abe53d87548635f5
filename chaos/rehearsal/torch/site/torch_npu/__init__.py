"""Stand-in for torch_npu, as far as a job with MindIO TFT calls it. On a job's path only during a rehearsal."""

from __future__ import annotations

from types import SimpleNamespace

__version__ = "2.13.0"

npu = SimpleNamespace()
"""The calls of the device; the device layer of a rehearsal puts its own here when this module is imported."""
