"""Which SDKs the suite drives: the stand-in, and the vendor's where it is installed.

``CONFORMANCE_SDK=standin`` or ``vendor`` chooses one; by default both are driven, as far as they are there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from chaos.doctor import Machine
from chaos.doctor.sdk.offered import offered_by
from chaos.machine.leases import Leases
from tests.conformance.driver import Story, importable, play

TABLE: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("expected.yaml").read_text("utf-8"))

Play = Callable[..., Story]


def need(sdk: str, name: str = "") -> None:
    """Skip unless this SDK is wanted and there, and can be told what this job tells it."""
    wanted = os.environ.get("CONFORMANCE_SDK", "both")
    if wanted not in ("standin", "vendor", "both"):
        raise pytest.UsageError(f"CONFORMANCE_SDK is {wanted!r}, not standin, vendor or both")
    if wanted not in (sdk, "both"):
        pytest.skip(f"CONFORMANCE_SDK={wanted}")
    if not importable(sdk):
        pytest.skip("the vendor's mindio_ttp is not installed for this Python")
    state = TABLE.get(name, {}).get("reports")
    if sdk == "vendor" and state is not None and state not in _vendors_states():
        pytest.skip(f"this mindio_ttp has no ReportState.{state}")


def _vendors_states() -> frozenset[str]:
    package = Machine().package("mindio_ttp")
    assert package is not None
    return offered_by(package).names["framework_ttp"]["ReportState"].members


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Play]:
    """Play a job: ``played("uce", "standin", "fast")``, or with the job itself in place of its name."""
    with Leases().take_ports(1) as ports:

        def run(case: str | dict[str, Any], sdk: str, timings: str) -> Story:
            job = TABLE[case]["job"] if isinstance(case, str) else case
            directory = tmp_path / sdk
            directory.mkdir()
            return play(job, sdk, timings, directory, ports.numbers[0])

        yield run
