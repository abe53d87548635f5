"""Whose SDK a run takes is decided by a package that can be imported, and the probe says the same of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.base.refusal import Refused
from chaos.doctor import Machine, probe
from chaos.jobs.kind import Simulated
from chaos.run.prepare.versions import choose_sdk, sdk_named

Put = Callable[[str], None]


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Put:
    """Puts a file into a ``mindio_ttp`` beside which ``python -m chaos`` is called."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "mindio_ttp"]:
        monkeypatch.delitem(sys.modules, name)  # the stand-in, which another test has imported
    if Machine().has_module("mindio_ttp"):
        pytest.skip("the vendor's package is installed here")
    monkeypatch.syspath_prepend(str(tmp_path))

    def put(name: str) -> None:
        (tmp_path / "mindio_ttp").mkdir(exist_ok=True)
        (tmp_path / "mindio_ttp" / name).touch()

    return put


def seen() -> bool:
    (found,) = probe(["mindio_ttp"], Machine())
    return found.ok


def test_the_vendors_package_is_taken_where_it_can_be_imported(put: Put) -> None:
    put("__init__.py")
    assert (choose_sdk("auto"), choose_sdk("vendor"), choose_sdk("standin"), seen()) == (
        "vendor",
        "vendor",
        "standin",
        True,
    )


def test_a_directory_of_its_name_is_not_the_vendors_package(put: Put) -> None:
    put("mindio_ttp_case.py")  # so lies the vendor's sample
    assert (choose_sdk("auto"), seen()) == ("standin", False)
    with pytest.raises(Refused, match="mindio_ttp is not installed"):
        choose_sdk("vendor")


@pytest.mark.parametrize(
    ("parts", "named"),
    [
        ((), "vendor"),
        ((Simulated("mindio_acp: the latest checkpoint of every rank in memory", "SDK"),), "vendor"),
        ((Simulated("collectives", "device layer"), Simulated("mindio_ttp, timings fast", "SDK")), "standin"),
    ],
)
def test_the_report_names_the_stand_in_where_the_job_kind_puts_it_in(parts: tuple[Simulated, ...], named: str) -> None:
    assert sdk_named(parts) == named
