"""The nodes of another package's platform have what runs ask of them, or the run is refused in a sentence."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from chaos.machine.job.protocol import PlatformError
from chaos.platforms.node_interface import MEMBERS, check_nodes


def test_a_node_with_every_member_is_taken() -> None:
    check_nodes([SimpleNamespace(**dict.fromkeys(MEMBERS))])


def test_a_node_of_an_earlier_interface_is_refused_by_its_members() -> None:
    members: dict[str, Any] = dict.fromkeys(MEMBERS - {"place", "node_network"})
    with pytest.raises(PlatformError, match=r"lack node_network \(formerly between\), place: .*platforms/nodes\.py"):
        check_nodes([SimpleNamespace(**members, between=None)])
