"""The inventory: the hosts that a job may live on, and the access to each. Strict YAML, without any secret."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from chaos.machine.linux.masking import masked
from chaos.scenario.errors import Problem, Problems, ScenarioError, printable, quote, suggest
from chaos.scenario.lines import locate
from chaos.scenario.models.terms import FROM_FILE, NAME, Model, Seconds
from chaos.scenario.source import Source, read_source
from chaos.scenario.yaml_nodes import Mapping as MappingNode
from chaos.scenario.yaml_nodes import Node, Sequence, parse, plain_data

MAX_HOSTS = 4096
MAX_DIRECTORY = 64
"""Characters of a host's directory: the path of a Unix socket below it may have 107 in all (unix(7))."""

SECRETS = frozenset({"password", "passphrase", "secret", "token", "private_key", "sudo_password"})
"""Keys that nobody may write into a file."""

_SECRET_LINE = re.compile(f"(?i)({'|'.join(sorted(SECRETS))})")
_FINGERPRINT = r"^SHA256:[A-Za-z0-9+/]{43}$"
_ADDRESS = r"^[A-Za-z0-9][A-Za-z0-9.:_-]*$"
_USER = r"^[A-Za-z_][A-Za-z0-9._-]*$"


class Deadlines(Model):
    """The named times of a connection."""

    connect: Seconds = Field(
        15.0, gt=0, description="Until a connection stands and its host's remote helper has said hello."
    )
    keepalive: Seconds = Field(2.0, gt=0, description="Between two signs of life that a silent connection is sent.")
    lost: Seconds = Field(10.0, gt=0, description="Silence after which a connection is lost.")
    vanished: Seconds = Field(10.0, gt=0, description="From a lost connection until its host counts as vanished.")
    boot: Seconds = Field(300.0, gt=0, description="From the order to reboot until the host answers again.")


class HostKeys(Model):
    """Keys that all hosts have by default, and that each host may have of its own."""

    port: int | None = Field(None, ge=1, le=65535, description="Port of its sshd. Default: 22.")
    user: str | None = Field(None, pattern=_USER, description="User to log in as. Default: the one who runs chaos.")
    key: str | None = Field(None, description="Private key file. Default: the keys of the SSH agent.")
    python: str | None = Field(
        None, pattern="^/", description="Python of the ranks there. Default: the harness's path."
    )
    directory: str | None = Field(
        None,
        pattern="^/",
        max_length=MAX_DIRECTORY,
        description="Directory in which each run makes a private one. Default: /var/tmp.",
    )
    reboot: tuple[str, ...] | None = Field(
        None, strict=False, min_length=1, description="Command that reboots it, for the fault node-reboot."
    )
    network: bool | None = Field(
        None,
        description="Whether faults may let what comes from the data addresses of the run's other hosts for its own "
        "vanish, all or a part of it, whoever sends it. Its user must be root. Default: false.",
    )


class HostEntry(HostKeys):
    """One host."""

    name: str = Field(pattern=NAME, max_length=100, description="Name in reports.")
    address: str = Field(pattern=_ADDRESS, description="Name or number that SSH connects to.")
    data_address: str | None = Field(
        None, pattern=_ADDRESS, description="Its number on the network of the job. Default: address."
    )
    fingerprint: str | None = Field(
        None, pattern=_FINGERPRINT, description="Of its host key, as ssh-keygen -l prints it. Default: known_hosts."
    )
    cores: tuple[int, ...] | None = Field(None, strict=False, description="Cores that its ranks are pinned to.")
    devices: tuple[int, ...] | None = Field(
        None, strict=False, description="NPUs that its ranks may use (ASCEND_RT_VISIBLE_DEVICES)."
    )


class InventoryFile(Model):
    """The file."""

    inventory: int = Field(ge=1, le=1, description="Version of the format: 1.")
    known_hosts: str = Field("~/.ssh/known_hosts", description="File of known host keys, in OpenSSH's form.")
    defaults: HostKeys = Field(HostKeys(), description="What all hosts have unless one says otherwise.")
    deadlines: Deadlines = Field(Deadlines(), description="Times of the connections.")
    hosts: tuple[HostEntry, ...] = Field(
        strict=False, min_length=1, max_length=MAX_HOSTS, description="The hosts, in the order of the job's nodes."
    )


_PARTS: Mapping[str, type[Model]] = {"hosts": HostEntry, "defaults": HostKeys, "deadlines": Deadlines}


@dataclass(frozen=True)
class Host:
    """One host with everything needed to reach it. Nothing of it is secret: ``key`` is the path of a file."""

    name: str
    address: str
    port: int
    user: str
    key: str | None
    known_hosts: str
    fingerprint: str | None
    data_address: str
    python: str
    directory: str
    reboot: tuple[str, ...] | None
    cores: tuple[int, ...] | None
    devices: tuple[int, ...] | None
    connect: float
    keepalive: float
    lost: float
    vanished: float
    boot: float
    network: bool = False

    def __str__(self) -> str:
        return f"host {self.name} ({self.user}@{self.address}:{self.port})"

    def as_json(self) -> dict[str, Any]:
        """Return plain data, for the undo ledger."""
        return {**vars(self), "reboot": self.reboot and list(self.reboot), "cores": None, "devices": None}

    def as_given(self) -> dict[str, Any]:
        """Return the inventory's entry of the host, for the record of a run; values left open are left out."""
        values = {**vars(self), "reboot": self.reboot and masked(self.reboot)}
        return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items() if value}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Host:
        """Return the host in ``data``, the opposite of :meth:`as_json`. Raises TypeError."""
        return cls(**{**data, "reboot": None if data.get("reboot") is None else tuple(data["reboot"])})


def read_inventory(path: Path, *, user: str, python: str) -> tuple[Host, ...]:
    """Return the hosts of the file. ``user`` and ``python`` are the defaults of a host that names none.

    Paths in it are relative to it. Raises ScenarioError with every problem, each with its line and column.
    """
    source = read_source(path, "an inventory")
    problems = Problems()
    try:
        root = _root(source, problems)
        file = _validated(root, source, problems)
        if file is None or problems:
            raise ScenarioError(problems)
    except ScenarioError as error:
        raise ScenarioError(map(_without_secrets, error.problems)) from None
    return tuple(_host(entry, file, path.resolve().parent, user, python) for entry in file.hosts)


def _root(source: Source, problems: Problems) -> MappingNode:
    if not re.sub(r"(?m)^\s*#.*$|^---\s*$", "", source.text).strip():
        raise ScenarioError([source.problem(1, 1, "the inventory is empty", hint="it begins with 'inventory: 1'")])
    try:
        return parse(source, problems)
    except ScenarioError as error:
        rest = [problem for problem in error.problems if "a scenario is a mapping" not in problem.message]
        if len(rest) == len(error.problems):
            raise
        message = "an inventory is a mapping of keys to values"
        raise ScenarioError([*rest, source.problem(1, 1, message, hint="it begins with 'inventory: 1'")]) from None


def _validated(root: MappingNode, source: Source, problems: Problems) -> InventoryFile | None:
    def report(path: tuple[str | int, ...], message: str, hint: str = "") -> None:
        place = locate(root, path)
        problems.append(source.problem(place.line, place.column, message, text=_last(path), hint=hint))

    for path in _secrets(root):
        report(
            path, f"{quote(path[-1])} has no place in a file", "use a key file without a passphrase, or an SSH agent"
        )
    try:
        file = InventoryFile.model_validate(plain_data(root, without=SECRETS), context=FROM_FILE)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            path = tuple(detail["loc"])
            if detail["type"] == "extra_forbidden":
                if path[-1] not in SECRETS:
                    known = _PARTS.get(str(path[0]), InventoryFile) if len(path) > 1 else InventoryFile
                    report(path, f"unknown key {quote(path[-1])}", suggest(str(path[-1]), known.model_fields))
            elif detail["type"] == "missing":
                report(path[:-1], f"the key {quote(path[-1])} is missing")
            elif detail["type"] != "too_short" or not locate(root, path).node.items:  # type: ignore[union-attr]
                report(path, f"{quote(_last(path))}: {detail['msg']}")
        return None
    _check_twice(file, report)
    return file


def _without_secrets(problem: Problem) -> Problem:
    """Return the problem, without its line where the line may hold a secret."""
    return replace(problem, excerpt="", caret=-1, text="") if _SECRET_LINE.search(problem.excerpt) else problem


def _check_twice(file: InventoryFile, report: Any) -> None:
    """Report two entries for one host: their ranks would meet, and a fault of one would hit both."""
    for what in ("name", "address"):
        first_entries: dict[Any, int] = {}
        for number, entry in enumerate(file.hosts):
            port = entry.port or file.defaults.port or 22
            key = entry.name if what == "name" else (entry.address, port)
            if key in first_entries:
                report(("hosts", number, what), f"host {first_entries[key] + 1} of the list has the same {what}")
            first_entries.setdefault(key, number)


def _secrets(node: Node, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(node, MappingNode):
        for key, entry in node.entries.items():
            if key.lower() in SECRETS:
                yield (*path, key)
            yield from _secrets(entry.value, (*path, key))
    elif isinstance(node, Sequence):
        for number, item in enumerate(node.items):
            yield from _secrets(item, (*path, number))


def _last(path: tuple[str | int, ...]) -> str:
    return next((part for part in reversed(path) if isinstance(part, str)), "")


def _host(entry: HostEntry, file: InventoryFile, beside: Path, user: str, python: str) -> Host:
    def of(name: str, otherwise: Any) -> Any:
        own = getattr(entry, name)
        return next((value for value in (own, getattr(file.defaults, name)) if value is not None), otherwise)

    def path(text: str) -> str:
        # Where there is no home directory the path stays as it is, and is reported as unreadable.
        return str(beside / os.path.expanduser(text))  # noqa: PTH111

    key = of("key", None)
    return Host(
        name=entry.name,
        address=entry.address,
        port=of("port", 22),
        user=of("user", user),
        key=None if key is None else path(key),
        known_hosts=path(file.known_hosts),
        fingerprint=entry.fingerprint,
        data_address=entry.data_address or entry.address,
        python=of("python", python),
        directory=of("directory", "/var/tmp"),
        reboot=of("reboot", None),
        network=of("network", False),
        cores=entry.cores,
        devices=entry.devices,
        **file.deadlines.model_dump(),
    )


def key_problem(host: Host) -> str | None:
    """Return the problem of a host's key file, in words; None when there is none, or no file is named."""
    if host.key is None:
        return None
    try:
        status = Path(host.key).stat()
    except OSError as error:
        return f"key file {printable(host.key)} cannot be read: {error.strerror}"
    if not stat.S_ISREG(status.st_mode):
        return f"key file {printable(host.key)} is no file"
    if status.st_mode & 0o077:
        mode = f"{stat.S_IMODE(status.st_mode):o}"
        return f"key file {printable(host.key)} can be read by others (mode {mode}); chmod it to 600"
    return None
