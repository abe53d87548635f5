"""An inventory is read strictly: what is wrong is said with its place, and a secret is never taken."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from chaos.machine.job.protocol import PlatformError
from chaos.platforms.ssh.inventory import Host, key_problem, read_inventory
from chaos.platforms.ssh.platform import hosts_of
from chaos.scenario.errors import ScenarioError
from chaos.scenario.models.ssh import Ssh

PRINT = "SHA256:" + "a" * 43
GOOD = f"""\
inventory: 1
known_hosts: hosts/known
defaults:
  user: train
  key: keys/id
  python: /opt/ms/bin/python
deadlines: {{lost: 7s}}
hosts:
  - name: first
    address: 10.0.0.5
    data_address: 192.168.7.5
    cores: [0, 1]
  - name: second
    address: node-2.example
    port: 2222
    user: other
    fingerprint: {PRINT}
    directory: /scratch
    reboot: [sudo, reboot]
"""


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    return tmp_path / "inventory.yaml"


def read(path: Path, text: str) -> tuple[Host, ...]:
    path.write_text(text)
    return read_inventory(path, user="me", python="/usr/bin/python3")


def problems(path: Path, text: str) -> list[tuple[int, int, str]]:
    with pytest.raises(ScenarioError) as refused:
        read(path, text)
    return [(problem.line, problem.column, problem.message) for problem in refused.value.problems]


def test_hosts_have_their_own_values_or_the_defaults(inventory: Path) -> None:
    first, second = read(inventory, GOOD)
    assert (first.user, first.port, first.data_address, first.cores) == ("train", 22, "192.168.7.5", (0, 1))
    assert (second.user, second.port, second.data_address) == ("other", 2222, "node-2.example")
    assert first.key == str(inventory.parent / "keys/id")
    assert first.known_hosts == str(inventory.parent / "hosts/known")
    assert second.reboot == ("sudo", "reboot")
    assert (first.lost, first.keepalive) == (7.0, 2.0)


def test_without_a_word_the_user_and_python_of_the_harness_are_taken(inventory: Path) -> None:
    (host,) = read(inventory, "inventory: 1\nhosts:\n  - {name: a, address: b}\n")
    assert (host.user, host.python, host.key, host.directory) == ("me", "/usr/bin/python3", None, "/var/tmp")


def test_what_the_ledger_keeps_of_a_host_is_enough_to_reach_it(inventory: Path) -> None:
    for host in read(inventory, GOOD):
        again = Host.from_json(host.as_json())
        assert (again.address, again.port, again.user, again.key) == (host.address, host.port, host.user, host.key)
        assert (again.fingerprint, again.reboot, again.vanished) == (host.fingerprint, host.reboot, host.vanished)


def test_what_a_run_records_of_a_host_is_what_the_inventory_says_without_secrets(inventory: Path) -> None:
    first, second = (
        host.as_given() for host in read(inventory, GOOD.replace("[sudo, reboot]", "[ipmi, --password, x-1]"))
    )
    assert first["cores"] == [0, 1]
    assert (first["address"], first["data_address"], first["lost"]) == ("10.0.0.5", "192.168.7.5", 7.0)
    assert second["reboot"] == ["ipmi", "--password", "***"]
    assert "cores" not in second
    json.dumps([first, second], allow_nan=False)


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("", 1, 1, "empty"),
        ("# nothing\n", 1, 1, "empty"),
        ("- a\n", 1, 1, "a mapping"),
        ("inventory: 2\nhosts:\n  - {name: a, address: b}\n", 1, 1, "'inventory'"),
        ("inventory: 1\n", 1, 1, "the key 'hosts' is missing"),
        ("inventory: 1\nhosts: []\n", 2, 1, "'hosts'"),
        ("inventory: 1\nhosts:\n  - name: a\n", 3, 5, "the key 'address' is missing"),
        ("inventory: 1\nhosts:\n  - name: a\n    adress: b\n    address: b\n", 4, 5, "unknown key 'adress'"),
        ("inventory: 1\nhosts:\n  - name: a\n    address: b\n    port: 70000\n", 5, 5, "'port'"),
        ("inventory: 1\nhosts:\n  - name: a\n    address: b\n    port: '22'\n", 5, 5, "'port'"),
        ("inventory: 1\nhosts:\n  - name: a\n    address: -oProxyCommand=x\n", 4, 5, "'address'"),
        ("inventory: 1\nhosts:\n  - name: a\n    address: b\n    user: -l\n", 5, 5, "'user'"),
        ("inventory: 1\nhosts:\n  - name: a\n    address: b\n    python: python3\n", 5, 5, "'python'"),
        ("inventory: 1\nhosts:\n  - name: a\n    address: b\n    fingerprint: MD5:aa\n", 5, 5, "'fingerprint'"),
        ("inventory: 1\nhosts:\n  - name: a\n    address: b\n  - name: a\n    address: c\n", 5, 5, "same name"),
        ("inventory: 1\nhosts:\n  - name: a\n    address: b\n  - name: c\n    address: b\n", 6, 5, "same address"),
        ("inventory: 1\nhosts: &x\n  - {name: a, address: b}\n", 2, 8, "anchor"),
        ("inventory: 1\ndeadlines: {lost: soon}\nhosts:\n  - {name: a, address: b}\n", 2, 13, "'lost'"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(inventory: Path, text: str, line: int, column: int, words: str) -> None:
    found = problems(inventory, text)
    assert any(one[:2] == (line, column) and words in one[2] for one in found), found


@pytest.mark.parametrize(
    "entry",
    [
        "{name: a, address: b, password: hunter2}",
        "{name: a, adress: b, Passphrase: hunter2}",
        "{name: a, address: b, token: [hunter2]}",
    ],
)
def test_a_secret_in_the_file_is_refused_and_never_shown(inventory: Path, entry: str) -> None:
    inventory.write_text(f"inventory: 1\nhosts:\n  - {entry}\n")
    with pytest.raises(ScenarioError) as refused:
        read_inventory(inventory, user="me", python="/p")
    assert "no place in a file" in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_two_ports_of_one_address_are_two_hosts(inventory: Path) -> None:
    text = "inventory: 1\nhosts:\n  - {name: a, address: l, port: 1}\n  - {name: b, address: l, port: 2}\n"
    assert [host.port for host in read(inventory, text)] == [1, 2]


def test_a_key_that_others_can_read_is_refused(inventory: Path) -> None:
    host, _ = read(inventory, GOOD)
    key = inventory.parent / "keys" / "id"
    assert "cannot be read" in str(key_problem(host))
    key.parent.mkdir()
    key.write_text("key")
    key.chmod(0o644)
    assert "chmod it to 600" in str(key_problem(host))
    key.chmod(0o600)
    assert key_problem(host) is None


def test_not_even_a_syntax_error_shows_a_secret(inventory: Path) -> None:
    inventory.write_text("inventory: 1\nhosts:\n  - name: a\n    password: hunter2: x\n")
    with pytest.raises(ScenarioError) as refused:
        read_inventory(inventory, user="me", python="/p")
    assert "hunter2" not in str(refused.value)


def test_a_directory_below_which_no_socket_can_be_is_refused(inventory: Path) -> None:
    text = f"inventory: 1\nhosts:\n  - name: a\n    address: b\n    directory: /{'d' * 64}\n"
    assert any(line == 5 and "'directory'" in message for line, _, message in problems(inventory, text))


def test_where_there_is_no_home_its_paths_stay_as_they_are(inventory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", _unknown)
    (host,) = read(inventory, "inventory: 1\nhosts:\n  - {name: a, address: l, key: ~/id}\n")
    assert str(key_problem(host)).count("~/id") == 1


def test_a_user_without_a_name_has_to_name_who_logs_in(inventory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", _unknown)
    inventory.write_text("inventory: 1\nhosts:\n  - {name: a, address: l}\n")
    site = SimpleNamespace(settings=Ssh(inventory=str(inventory)), readable=[inventory.parent], nodes=1)
    with pytest.raises(PlatformError, match="say `user` of a: who runs chaos has no name"):
        hosts_of(site)  # type: ignore[arg-type]


def _unknown(uid: int) -> None:
    raise KeyError(uid)
