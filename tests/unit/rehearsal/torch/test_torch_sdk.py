"""The stand-in of MindIO TFT in PyTorch mode: the wrapper around the training, torchrun's wait, the texts of errors."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import chaos
from chaos.rehearsal.torch.texts import of_torch_npu

SDK = Path(chaos.__file__).parent / "rehearsal" / "sdk"


class Tft:
    """The processor's side of the wrapper: it notes the calls, and answers RETRY."""

    def __init__(self, sdk: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        states = {state.value: state.name for state in sdk.ReportState}
        replaced = {
            "tft_report_error": lambda state: self.calls.append(states[state]),
            "tft_wait_next_action": lambda: self._note("clean"),
            "tft_wait_repair_action": lambda: self._note("repaired"),
            "tft_destroy_controller": lambda: self.calls.append("no controller"),
            "tft_destroy_processor": lambda: self.calls.append("no processor"),
            "own_rank": lambda: 1,
        }
        for name, function in replaced.items():
            monkeypatch.setattr(sdk, name, function)

    def _note(self, what: str) -> int:
        self.calls.append(what)
        return 0


@pytest.fixture
def sdk(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.delenv("TTP_LOG_PATH", raising=False)
    monkeypatch.delenv("MINDIO_FOR_MINDSPORE", raising=False)
    monkeypatch.setenv("TTP_STOP_CLEAN_BEFORE_DUMP", "0")
    monkeypatch.syspath_prepend(str(SDK))
    yield importlib.import_module("mindio_ttp.framework_ttp")
    for name in [name for name in sys.modules if name.split(".")[0] == "mindio_ttp"]:
        del sys.modules[name]


def wrapped(sdk: ModuleType, *errors: Exception) -> Any:
    left = list(errors)

    def train(steps: int) -> int:
        if left:
            raise left.pop(0)
        return steps

    return sdk.tft_exception_handler(train)


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("UCE ERROR. The error code is 507053", "RS_UCE"),
        ("FORCE STOP. The device was stopped", "RS_NORMAL"),
        ("HCCL OP RETRY FAILED. The error code is 507904", "RS_HCCL_FAILED"),
        ("SUSPECT REMOTE ERROR", "RS_HCCL_FAILED"),
    ],
)
def test_a_known_error_is_reported_and_the_training_called_again(
    sdk: ModuleType, monkeypatch: pytest.MonkeyPatch, text: str, state: str
) -> None:
    tft = Tft(sdk, monkeypatch)
    assert wrapped(sdk, RuntimeError(text))(7) == 7
    assert tft.calls == [state, "clean", "repaired", "no processor"]


def test_the_new_process_of_a_lost_rank_waits_for_no_stop(sdk: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    tft = Tft(sdk, monkeypatch)
    assert wrapped(sdk, RuntimeError("ARF FINISH"))(7) == 7
    assert tft.calls == ["RS_PREREPAIR_FINISH", "repaired", "no processor"]


@pytest.mark.parametrize("error", [RuntimeError("shapes do not fit"), ValueError("UCE ERROR")])
def test_any_other_error_is_unknown_and_raised(
    sdk: ModuleType, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    tft = Tft(sdk, monkeypatch)
    with pytest.raises(type(error)):
        wrapped(sdk, error)(7)
    assert tft.calls == ["RS_UNKNOWN"]


def test_a_registered_error_goes_to_its_handler(sdk: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    tft = Tft(sdk, monkeypatch)
    seen: list[Exception] = []
    sdk.tft_register_exception_handler("PRECISION ERROR", "RS_RETRY", seen.append)
    error = RuntimeError("PRECISION ERROR: the loss is too large")
    assert wrapped(sdk, error)(7) == 7
    assert seen == [error] and tft.calls[0] == "RS_RETRY"


@pytest.mark.parametrize(("time", "state"), [("300", "RS_UCE"), ("150", "RS_UCE_CORRUPTED"), ("", "RS_UCE_CORRUPTED")])
def test_an_ecc_error_within_the_update_cannot_be_repaired(
    sdk: ModuleType, monkeypatch: pytest.MonkeyPatch, time: str, state: str
) -> None:
    tft = Tft(sdk, monkeypatch)
    utils = importlib.import_module("mindio_ttp.utils")
    utils.tft_set_update_start_time(100)
    utils.tft_set_update_end_time(200)
    wrapped(sdk, RuntimeError(f"HBM MULTI BIT ECC ERROR, time us={time}."))(7)
    assert tft.calls[0] == state


def test_naming_the_framework_has_devices_cleaned_before_a_save(sdk: ModuleType) -> None:
    sdk.set_mindio_export_version("MindSpeed-LLM")
    assert os.environ["TTP_STOP_CLEAN_BEFORE_DUMP"] == "1"
    assert sdk.get_mindio_export_version() == "MindSpeed-LLM"
    with pytest.raises(ValueError, match="not supported"):
        sdk.set_mindio_export_version("torchtitan")


class Context:
    """torchrun's context of ranks: how long it waits between SIGTERM and SIGKILL."""

    waited: int | None = None

    def _close(self, death_sig: int, timeout: int = 30) -> None:
        self.waited = timeout


@pytest.mark.parametrize(("limit", "seconds"), [(None, 180), ("600", 600), ("5", 180), ("later", 180)])
def test_torchrun_waits_longer_where_it_imports_the_sdk(
    monkeypatch: pytest.MonkeyPatch, limit: str | None, seconds: int
) -> None:
    context = type("Context", (Context,), {"_close": Context._close})
    api = SimpleNamespace(SubprocessContext=context)
    monkeypatch.setitem(sys.modules, "torch.distributed.elastic.multiprocessing.api", api)
    monkeypatch.syspath_prepend(str(SDK))
    if limit is None:
        monkeypatch.delenv("TTP_NORMAL_ACTION_TIME_LIMIT", raising=False)
    else:
        monkeypatch.setenv("TTP_NORMAL_ACTION_TIME_LIMIT", limit)
    importlib.import_module("mindio_ttp.framework_ttp")
    for name in [name for name in sys.modules if name.split(".")[0] == "mindio_ttp"]:
        del sys.modules[name]
    ranks = context()
    ranks._close(15)
    assert ranks.waited == seconds
    ranks._close(15, 900)
    assert ranks.waited == max(seconds, 900)


def test_a_device_of_pytorch_has_texts_of_its_own() -> None:
    assert of_torch_npu("UCEError error occurs when execute, error_code=507053.").startswith("UCE ERROR.")
    assert of_torch_npu("HCCEError error occurs when execute, error_code=507904.").startswith("HCCL OP RETRY FAILED.")
    assert of_torch_npu("ForceStopError error occurs when execute: stopped").startswith("FORCE STOP.")
    assert of_torch_npu("something else") == "something else"
