"""What the vendor's tools print, by recorded outputs of several drivers; anything else is quoted, never guessed."""

from __future__ import annotations

import pytest

from chaos.machine.ascend.hccn import HEALTH, read_link, read_net_health
from chaos.machine.ascend.mapping import read_mapping
from chaos.machine.ascend.reset import read_reset
from chaos.machine.ascend.table import ListedProcess, read_table
from chaos.machine.ascend.unreadable import UnreadableOutput
from tests.kit.runs.recorded import recorded


@pytest.mark.parametrize(
    ("name", "version", "chips", "processes"),
    [
        ("910-23.0.rc3", "23.0.rc2.3", [(0, 0, None), (1, 0, None)], [(0, 0, 277624), (1, 0, 277626)]),
        (
            "910b2c-25.0.rc1.2",
            "25.0.rc1.2",
            [(0, 0, None), (1, 0, None)],
            [(0, 0, 6513), (0, 0, 33776), (1, 0, 33777)],
        ),
        (
            "910c-24.1.rc3.7",
            "24.1.rc3.7",
            [(0, 0, 0), (0, 1, 1), (1, 0, 2), (1, 1, 3), (2, 0, 4), (2, 1, 5)],
            [
                *((0, 0, pid) for pid in (3325989, 3330598, 3328327, 3333165)),
                *((0, 1, 3328327), (1, 0, 3330598), (1, 1, 3333165)),
            ],
        ),
        ("910b4-26.0.rc1", "26.0.rc1", [(0, 0, None)], []),
    ],
)
def test_the_tables_of_several_drivers_are_read(
    name: str, version: str, chips: list[tuple[int, int, int | None]], processes: list[tuple[int, int, int]]
) -> None:
    table = read_table(recorded("npu_smi_table", name))
    assert table.version == version
    assert [(row.npu, row.chip, row.physical) for row in table.chips] == chips
    assert {chip.health for chip in table.chips} == {"OK"}
    assert list(table.processes) == [ListedProcess(*process) for process in processes]


def test_the_health_is_that_of_the_card() -> None:
    text = recorded("npu_smi_table", "910b2c-25.0.rc1.2").replace(
        "1     910B2C              | OK   ", "1     910B2C              | Alarm"
    )
    assert [chip.health for chip in read_table(text).chips] == ["OK", "Alarm"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("| NPU   Name ", "| NPU   Title"),
        ("| Chip       ", "| Kernel     "),
        ("0000:65:02.0  | 11 ", "0000:65:02.0  | 11 |\n| 1 2 3 | x "),
        ("| 1       0                 | 33777", "| 7       0                 | 33777"),
        ("| 1       0                 | 33777", "| 1       0                 | -1   "),
        ("| 1       0                 | 33777         | VLLMWorker_TP            | 31747                   |\n", ""),
        ("npu-smi 25", "smi 25"),
        ("| 1     910B2C", "  1     910B2C"),
        ("| NPU     Chip  ", "| NPU     Core  "),
    ],
)
def test_a_table_that_no_document_shows_is_quoted(old: str, new: str) -> None:
    text = recorded("npu_smi_table", "910b2c-25.0.rc1.2")
    assert old in text
    with pytest.raises(UnreadableOutput, match=r"npu-smi info: .*nothing is guessed"):
        read_table(text.replace(old, new))


@pytest.mark.parametrize(
    ("name", "chips"),
    [
        ("910a", [(npu, 0, npu, None, "Ascend 910A") for npu in range(8)]),
        ("910b3", [(0, 0, 0, None, "Ascend 910B3"), (1, 0, 1, None, "Ascend 910B3")]),
        ("910c", [(number // 2, number % 2, number, number, "Ascend910") for number in range(6)]),
    ],
)
def test_the_mappings_of_several_drivers_are_read(name: str, chips: list[tuple[object, ...]]) -> None:
    found = read_mapping(recorded("npu_smi_mapping", name))
    assert [(one.npu, one.chip, one.logic, one.physical, one.name) for one in found] == chips


@pytest.mark.parametrize(
    "text",
    [
        "",
        "dcmi module initialize failed. ret is -8005\n",
        recorded("npu_smi_mapping", "910a").replace("Chip Logic ID", "Slot ID"),
        recorded("npu_smi_mapping", "910a").replace("Ascend 910A", "Mcu"),
        recorded("npu_smi_mapping", "910a") + recorded("npu_smi_mapping", "910a").splitlines()[1],
        recorded("npu_smi_mapping", "910a").replace("7     ", "x     "),
    ],
)
def test_a_mapping_that_no_document_shows_is_quoted(text: str) -> None:
    with pytest.raises(UnreadableOutput, match=r"npu-smi info -m: .*nothing is guessed"):
        read_mapping(text)


@pytest.mark.parametrize("state", HEALTH)
def test_every_state_of_the_network_is_read(state: str) -> None:
    assert read_net_health(f"net health status: {state}\n") == state


@pytest.mark.parametrize(
    "text", ["", "net health status: \n", "net health status: Good\n", "Fault\n", "x\nnet health status: Fault"]
)
def test_an_unknown_state_is_quoted(text: str) -> None:
    with pytest.raises(UnreadableOutput, match="hccn_tool -net_health -g: no known state"):
        read_net_health(text)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (recorded("npu_smi_reset", "ok"), "OK"),
        ("Are you sure?(Y/N)" + recorded("npu_smi_reset", "ok"), "OK"),
        ("Are you sure?(Y/N)        Status   : OK\n        Message  : Reset card successfully.\n", "OK"),
        ("Are you sure to reset? [Y/N]: Status : Fail\n", "Fail"),
        ("Status : Fail\nMessage : The device is in use.\n", "Fail"),
        ("\tStatus                         : FAIL\r\n", "Fail"),
        ("Status : OK\nMessage : Failed to reset chip 1.\n", None),
        ("Status : OK\nStatus : Fail\n", None),
        ("Status : OKAY\n", None),
        ("Message : Reset card successfully.\n", None),
        ("", None),
    ],
)
def test_the_answer_to_a_reset_is_ok_or_fail_and_else_not_known(text: str, status: str | None) -> None:
    assert read_reset(text) == status


def test_a_link_is_up_or_down() -> None:
    assert [read_link("link status: UP\n"), read_link("link status: DOWN")] == ["UP", "DOWN"]
    with pytest.raises(UnreadableOutput, match="'link status: MAYBE'"):
        read_link("link status: MAYBE")
