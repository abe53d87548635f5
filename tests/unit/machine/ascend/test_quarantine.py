"""Cards that the cluster has quarantined are found where the vendor keeps them; whoever cannot be asked is unknown."""

from __future__ import annotations

import pytest

from chaos.doctor import Machine, probe
from chaos.machine.ascend.quarantine import quarantined, read_manual, read_plugin
from chaos.machine.ascend.unreadable import UnreadableOutput
from chaos.machine.linux.commands import CommandError, Done
from tests.kit.runs.recorded import SEEDS, Recorded

PLUGIN = (SEEDS / "quarantine" / "plugin.json").read_text()
MANUAL = (SEEDS / "quarantine" / "manual.json").read_text()
ASK_PLUGIN = "kubectl get configmap -n kube-system mindx-dl-deviceinfo-worker-1 -o json"
ASK_MANUAL = "kubectl get configmap -n cluster-system clusterd-manual-info-cm -o json"
NONE = Done(("kubectl",), 1, "", 'Error from server (NotFound): configmaps "clusterd-manual-info-cm" not found')


def test_both_places_are_asked() -> None:
    found = quarantined("worker-1", Recorded([(ASK_PLUGIN, PLUGIN), (ASK_MANUAL, MANUAL)]))
    assert (found.known, found.cards) == (True, ("Ascend910-0", "Ascend910-2"))


def test_an_older_cluster_has_one_of_them_only() -> None:
    assert quarantined("worker-1", Recorded([(ASK_PLUGIN, PLUGIN), (ASK_MANUAL, NONE)])).cards == ("Ascend910-0",)


def test_no_name_is_no_card() -> None:
    assert read_plugin(PLUGIN.replace("Ascend910-0", ""), "worker-1") == ()
    assert read_manual(MANUAL, "worker-2") == ()


@pytest.mark.parametrize(
    "text",
    [
        '{"kind": "ConfigMap"}',
        '{"kind": "ConfigMap", "data": {}}',
        '{"kind": "ConfigMap", "data": {"DeviceInfoCfg": ""}}',
    ],
)
def test_a_config_map_without_the_key_tells_nothing(text: str) -> None:
    """Documents show an empty text for no card."""
    found = quarantined("worker-1", Recorded([(ASK_PLUGIN, text)]))
    assert not found.known and "it has no key ManuallySeparateNPU" in found.how


def test_clusterd_has_the_nodes_with_isolated_cards_only() -> None:
    assert quarantined("worker-1", Recorded([(ASK_PLUGIN, PLUGIN), (ASK_MANUAL, '{"kind": "ConfigMap"}')])).known


def test_a_node_without_a_device_plugin_is_not_known_to_be_well() -> None:
    found = quarantined("worker-1", Recorded([(ASK_PLUGIN, NONE)]))
    assert not found.known and "NotFound" in found.how


def test_without_kubectl_nothing_is_known() -> None:
    def absent(*argv: str, answer: str = "") -> Done:
        raise CommandError("there is no kubectl on this machine")

    found = quarantined("worker-1", absent)
    assert (found.known, found.how) == (False, "there is no kubectl on this machine")


def test_a_name_that_is_none_of_a_node_is_handed_to_nobody() -> None:
    assert not quarantined("--all-namespaces", Recorded([])).known


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        PLUGIN.replace("ConfigMap", "Secret"),
        PLUGIN.replace("Ascend910-0", "rm -rf"),
        PLUGIN.replace('"Ascend910-0"', "7"),
    ],
)
def test_a_config_map_that_no_document_shows_is_quoted(text: str) -> None:
    with pytest.raises(UnreadableOutput, match="nothing is guessed"):
        read_plugin(text, "worker-1")


@pytest.mark.parametrize("entry", ["", "{}", '{\\"Total\\":7}', '{\\"Total\\":[7]}'])
def test_an_entry_that_no_document_shows_is_quoted(entry: str) -> None:
    text = f'{{"kind": "ConfigMap", "data": {{"worker-1": "{entry}"}}}}'
    with pytest.raises(UnreadableOutput, match="nothing is guessed"):
        read_manual(text, "worker-1")


def test_doctor_says_which_cards_are_quarantined_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_NAME", "worker-1")

    def seen(*calls: tuple[str, str | Done]) -> tuple[bool, str, str]:
        machine = Machine(which=lambda name, path=None: "/usr/bin/kubectl", commands=Recorded(calls))
        (found,) = probe(["quarantine"], machine)
        return found.ok, found.seen, found.advice

    ok, text, advice = seen((ASK_PLUGIN, PLUGIN), (ASK_MANUAL, NONE))
    assert (ok, text) == (False, "ManuallySeparateNPU: Ascend910-0")
    assert "kubectl edit cm -n kube-system mindx-dl-deviceinfo-worker-1" in advice
    assert seen((ASK_PLUGIN, PLUGIN.replace("Ascend910-0", "")), (ASK_MANUAL, NONE))[0]
    assert not seen((ASK_PLUGIN, "unreachable"))[0]
    paths = {"npu-smi": "/usr/local/bin/npu-smi"}
    (absent,) = probe(["quarantine"], Machine(which=lambda name, path=None: paths.get(name)))
    assert (absent.ok, absent.seen) == (False, "not known: no kubectl")
