"""Which device a rank trains on: what its environment names and what npu-smi lists must agree."""

from __future__ import annotations

import pytest

from chaos.machine.ascend.device import Device, NoDevice, device_of
from chaos.machine.ascend.tools import AscendTools
from tests.kit.runs.recorded import Recorded, recorded


def tools(mapping: str, table: str) -> AscendTools:
    calls = [
        ("npu-smi info -m", recorded("npu_smi_mapping", mapping)),
        ("npu-smi info", recorded("npu_smi_table", table)),
    ]
    return AscendTools(Recorded(calls))


B, C = ("910b3", "910b2c-25.0.rc1.2"), ("910c", "910c-24.1.rc3.7")


@pytest.mark.parametrize("variable", ["DEVICE_ID", "ASCEND_DEVICE_ID"])
def test_the_environment_names_it_and_npu_smi_proves_it(variable: str) -> None:
    assert device_of(1, 33777, {variable: "1"}, tools(*B)) == Device(1, 0, 1, 1)


def test_on_a_card_with_two_chips_the_logical_number_is_not_that_of_the_card() -> None:
    assert device_of(3, 3333165, {"DEVICE_ID": "3"}, tools(*C)) == Device(1, 1, 3, 3)


def test_visible_devices_shift_the_numbers() -> None:
    environment = {"DEVICE_ID": "0", "ASCEND_RT_VISIBLE_DEVICES": "3,2"}
    assert device_of(0, 3333165, environment, tools(*C)).logic == 3


def test_a_process_on_one_chip_alone_needs_no_variable() -> None:
    assert device_of(0, 3325989, None, tools(*C)) == Device(0, 0, 0, 0)


@pytest.mark.parametrize(
    ("pid", "environment", "words"),
    [
        (4711, {"DEVICE_ID": "0"}, "lists process 4711 of rank 5 on no chip"),
        (3333165, {}, "is on NPU 0 chip 0, NPU 1 chip 1, and no variable"),
        (
            3325989,
            {"DEVICE_ID": "1"},
            "names device 1, NPU 0 chip 1, but npu-smi info lists its process 3325989 on NPU 0",
        ),
        (3325989, {"DEVICE_ID": "77"}, "names device 77, which npu-smi info -m does not list"),
        (3325989, {"DEVICE_ID": "zero"}, "no number of a device follows"),
        (3325989, {"DEVICE_ID": "2", "ASCEND_RT_VISIBLE_DEVICES": "0,1"}, "no number of a device follows"),
    ],
)
def test_where_they_do_not_agree_no_card_is_touched(pid: int, environment: dict[str, str], words: str) -> None:
    with pytest.raises(NoDevice, match=words):
        device_of(5, pid, environment, tools(*C))


def test_a_card_of_several_chips_without_physical_numbers_is_refused() -> None:
    mapping = "NPU ID   Chip ID   Chip Logic ID   Chip Name\n0   0   0   Ascend910\n0   1   1   Ascend910\n"
    calls = [("npu-smi info -m", mapping), ("npu-smi info", recorded("npu_smi_table", B[1]))]
    with pytest.raises(NoDevice, match="several chips, and npu-smi tells no physical number"):
        device_of(0, 6513, {"DEVICE_ID": "0"}, AscendTools(Recorded(calls)))


def test_two_answers_that_differ_are_refused() -> None:
    mapping = recorded("npu_smi_mapping", "910c").replace(
        "1                              1                              3                              3",
        "1                              1                              3                              9",
    )
    calls = [("npu-smi info -m", mapping), ("npu-smi info", recorded("npu_smi_table", C[1]))]
    with pytest.raises(NoDevice, match="card 9 and card 3"):
        device_of(3, 3333165, {"DEVICE_ID": "3"}, AscendTools(Recorded(calls)))
