"""What is run in place of a block that cannot be run here: the same commands, as far as they go on this machine."""

from __future__ import annotations

from tests.documents.blocks import Block

_COLLECT = "-m pytest --collect-only -q -p no:cacheprovider"
HOSTS = """\
cat > hosts.yaml <<'END'
inventory: 1
defaults: {user: root, key: ~/.ssh/id_ed25519}
hosts:
  - {name: a, address: a.example, data_address: 192.168.7.1, network: true, reboot: [reboot], fingerprint: "SHA256:FP"}
  - {name: b, address: b.example, data_address: 192.168.7.2, network: true, reboot: [reboot], fingerprint: "SHA256:FP"}
END
""".replace("FP", "n6hRxJ1cCw0BM0tmu4NNb2mPAFXzZ1kcSO2e7Xc1qXo")

INSTEAD: dict[tuple[str, str], str] = {
    ("python.md", "pytest scenarios/"): f"python {_COLLECT} scenarios/",
    ("conformance.md", "pytest tests/conformance"): f"""\
python {_COLLECT} tests/conformance
python {_COLLECT} tests/conformance -m nightly
CONFORMANCE_SDK=vendor python {_COLLECT} tests/conformance -m nightly
""",
    ("endings.md", "chaos soak"): "chaos plan kill-rank.yaml disk-full.yaml",
    ("kubernetes.md", "chaos kubernetes manifest"): """\
cp scenarios/kubernetes/kubernetes-pod-delete.yaml scenario.yaml
chaos kubernetes manifest scenario.yaml > objects.yaml
awk '/^---/ {number++} number == 1' objects.yaml > job.yaml      # those of one node
chaos kubernetes check job.yaml --scenario scenario.yaml || test $? -eq 64
chaos kubernetes rbac scenario.yaml > rights.yaml
grep -q ServiceAccount rights.yaml
""",
    ("launchers.md", "chaos init"): "chaos init --help > help && grep -q -e --launch help",
    ("mindformers.md", "packages="): """\
packages=$(python -c 'print(__import__("sysconfig").get_path("purelib"))')
test -d "$packages"
python -c 'import chaos.agent, os; print(os.path.dirname(chaos.agent.__file__))' > agent
cp "$(cat agent)/chaos-agent.pth" .
""",
    ("on-the-device.md", "chaos run link-down.yaml"): HOSTS
    + "chaos plan link-down.yaml --platform ssh --inventory hosts.yaml",
    ("platforms.md", "chaos image"): "chaos image --engine unix:///nowhere.sock || test $? -eq 64\n"
    "chaos plan kill-rank.yaml --platform docker",
    ("running-jobs.md", "chaos watch"): "chaos watch --help > help && grep -q -e --record help",
    ("selftest.md", "chaos run chaos/selftest"): HOSTS
    + """\
scenario=$(python -c 'import chaos.selftest, os; print(os.path.dirname(chaos.selftest.__file__))')/scenarios
chaos plan "$scenario/host-reboot.yaml" --platform ssh --inventory hosts.yaml
python -c 'import chaos.selftest.recorded'
""",
    ("ssh.md", "ssh-keygen"): HOSTS
    + """\
chaos plan kill-node.yaml --platform ssh --inventory hosts.yaml
chaos plan kill-rank.yaml --platform ssh --inventory hosts.yaml
""",
    ("ssh.md", "chaos run partition.yaml"): HOSTS + "chaos plan partition.yaml --platform ssh --inventory hosts.yaml",
}
"""By page, and how the block begins."""


def instead_of(block: Block) -> str | None:
    """What is run in its place; None where nothing of it can be."""
    found = [
        text for (page, start), text in INSTEAD.items() if block.page.name == page and block.text.startswith(start)
    ]
    return found[0] if found else None
