"""Public faults: the message that tells ClusterD of a fault that no component of its own has seen.

ClusterD silently drops a message with a value out of range, so a message is checked here before it is sent. Sources:
MindCluster's page on the interfaces of public faults, ``clusterd/pkg/application/publicfault/checker.go`` and
``clusterd/build/publicFaultConfiguration.json`` (August 2026).
"""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from chaos.platforms.kubernetes import names
from chaos.platforms.kubernetes.workload import Manifest

SENDERS = ("CCAE", "fd-online", "pingmesh", "Netmind", "dpcStorage", "dtfsStorage")
"""Senders of the configuration that ClusterD is shipped with; a cluster's administrator may add others."""

LEVELS = {
    "NotHandle": ("200001006", "200001010", "200001011", "200001012", "100001011"),
    "SubHealth": (
        "010001001",
        "010001002",
        "010001004",
        "110001010",
        "110001020",
        "110001021",
        "210001007",
        "210001008",
        "210001009",
        "310001005",
    ),
    "SeparateNPU": (
        "020001001",
        "020001003",
        "020001004",
        "120001001",
        "120001002",
        "120001003",
        "220001001",
        "220001002",
        "220001003",
        "220001004",
        "220001005",
        "220001006",
        "220001007",
    ),
    "PreSeparateNPU": ("110001022", "110001023"),
}
"""Fault codes of that configuration, by ClusterD's response to them."""

MAX_BYTES = 1_000_000
"""Largest message, in bytes: the cluster refuses more than 1 MB in one object."""

_EARLIEST = int(datetime(2025, 1, 1, tzinfo=timezone.utc).timestamp() * 1000)
_Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{8,128}$")]
_Millis = Annotated[int, Field(ge=_EARLIEST, le=9_999_999_999_999)]
_NODE = r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$"


class InvalidPublicFault(ValueError):
    """ClusterD would drop the message. The text names every field that is out of range."""


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Influence(_Message):
    """A node, and the physical numbers of its NPUs that the fault is about."""

    nodeName: str = Field(pattern=_NODE)
    deviceIds: tuple[Annotated[int, Field(ge=0, le=31)], ...] = Field(min_length=1, max_length=32)

    @field_validator("deviceIds")
    @classmethod
    def _once_each(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(value)) != len(value):
            raise ValueError("an NPU is named twice")
        return value


class Fault(_Message):
    """One fault. ``faultTime`` is when it began, in milliseconds, also in the message of its recovery."""

    faultId: _Id
    faultType: Literal["NPU", "Node", "Network", "Storage"]
    faultCode: str = Field(pattern=r"^[0-9]{9}$")
    faultTime: _Millis
    assertion: Literal["occur", "recover", "once"]
    faultLocation: dict[Annotated[str, Field(max_length=16)], Annotated[str, Field(max_length=128)]] = Field(
        {}, max_length=10
    )
    influence: tuple[Influence, ...] = Field(min_length=1, max_length=1000)
    description: str = Field("", pattern=r"^[\S ]{0,512}$")


class PublicFault(_Message):
    """The whole message. ``timestamp`` is its sending time, in milliseconds."""

    id: _Id
    timestamp: _Millis
    version: Literal["1.0"] = "1.0"
    resource: str = Field(min_length=1, max_length=128)
    faults: tuple[Fault, ...] = Field(min_length=1, max_length=100)

    @model_validator(mode="after")
    def _different(self) -> PublicFault:
        ids = [fault.faultId for fault in self.faults]
        if len(set(ids)) != len(ids):
            raise ValueError("two faults of the message have the same faultId")
        return self


def fault_id(run: str, fault: str) -> str:
    """Return the identity of a run's fault in ClusterD, the same when it occurs and when it has recovered."""
    return f"{run}.{fault}"[-128:]


def public_fault(
    run: str,
    fault: str,
    *,
    node: str,
    devices: tuple[int, ...],
    code: str,
    kind: str,
    began_ms: int,
    now_ms: int,
    assertion: str,
    sender: str = "fd-online",
    codes: frozenset[str] | None = None,
) -> PublicFault:
    """Return the message that a run's fault has occurred, or recovered. Times are milliseconds since 1970.

    ``codes`` are the fault codes of the cluster's configuration; None for the codes that ClusterD is shipped with.
    Raises InvalidPublicFault for a message that ClusterD would drop.
    """
    known = codes if codes is not None else frozenset(level_code for level in LEVELS.values() for level_code in level)
    if code not in known:
        raise InvalidPublicFault(
            f"fault code {code!r} is not configured in ClusterD, which would drop the message; known: "
            f"{', '.join(sorted(known))}"
        )
    try:
        return PublicFault.model_validate(
            {
                "id": f"{run}.{fault}.{assertion}"[-128:],
                "timestamp": now_ms,
                "resource": sender,
                "faults": (
                    {
                        "faultId": fault_id(run, fault),
                        "faultType": kind,
                        "faultCode": code,
                        "faultTime": began_ms,
                        "assertion": assertion,
                        "influence": ({"nodeName": node, "deviceIds": devices},),
                        "description": "injected by a chaos test",
                    },
                ),
            }
        )
    except ValidationError as error:
        listed = "; ".join(f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" for detail in error.errors())
        raise InvalidPublicFault(f"ClusterD would drop this message: {listed}") from error


def configmap(name: str, namespace: str, labels: dict[str, str], message: PublicFault) -> Manifest:
    """Return the ConfigMap that ClusterD listens for. Raises InvalidPublicFault where it is too large for an object."""
    text = json.dumps(message.model_dump(mode="json"), separators=(",", ":"))
    if len(text.encode()) > MAX_BYTES:
        raise InvalidPublicFault(f"the message has {len(text):,} bytes: at most {MAX_BYTES:,} are taken")
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {**labels, names.PUBLIC_FAULT_LABEL: "true"},
        },
        "data": {names.PUBLIC_FAULT_KEY: text},
    }
