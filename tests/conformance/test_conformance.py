"""The stand-in against the table of what MindIO TFT does, and the vendor's SDK against it where that is installed."""

from __future__ import annotations

import pytest

from tests.conformance.compare import differences, lateness, seconds, told
from tests.conformance.conftest import TABLE, Play, need

pytestmark = pytest.mark.processes

EVERYDAY = [
    pytest.param(name, marks=() if case.get("everyday") else pytest.mark.nightly) for name, case in TABLE.items()
]
TIMED = [name for name, case in TABLE.items() if "seconds" in case]
POLLING_SECONDS = 2.0
NEVER = 600.0
"""As a limit of the fast profile: a job that ends has not waited for it."""


@pytest.mark.parametrize("name", EVERYDAY)
def test_the_stand_in_does_what_the_table_says(name: str, played: Play) -> None:
    need("standin")
    assert differences(TABLE[name], played(name, "standin", "fast")) == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", TABLE)
def test_the_vendors_sdk_does_what_the_table_says(name: str, played: Play) -> None:
    need("vendor", name)
    assert differences(TABLE[name], played(name, "vendor", "vendor")) == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name, case in TABLE.items() if case.get("ending") != "free"])
def test_both_tell_the_same_story(name: str, played: Play) -> None:
    need("vendor", name)
    unawaited = TABLE[name].get("unawaited", {})
    assert told(played(name, "standin", "fast"), unawaited) == told(played(name, "vendor", "vendor"), unawaited)


@pytest.mark.nightly
@pytest.mark.parametrize("sdk", ["standin", "vendor"])
@pytest.mark.parametrize("name", TIMED)
def test_the_vendors_times_are_met(name: str, sdk: str, played: Play) -> None:
    """Within a fifth, or one polling period, of what was observed."""
    need(sdk, name)
    story = played(name, sdk, "vendor")
    seen = seconds(story)
    for what, (low, high) in TABLE[name]["seconds"].items():
        allowed = max(POLLING_SECONDS, 0.2 * high)
        assert low - max(POLLING_SECONDS, 0.2 * low) <= seen[what] <= high + allowed + lateness(story), (what, seen)


def test_the_fast_profile_finds_a_dead_rank_by_its_connection_and_not_by_its_silence(played: Play) -> None:
    need("standin")
    story = played({**TABLE["kill-rank"]["job"], "fast": {"lost_after": NEVER}}, "standin", "fast")
    assert differences(TABLE["kill-rank"], story) == []
    assert seconds(story)["detected"] > 0


def test_the_fast_profile_waits_for_no_limit_when_it_repairs_online(played: Play) -> None:
    need("standin")
    limits = dict.fromkeys(("lost_after", "collection", "pre_lock", "action"), NEVER)
    story = played({**TABLE["uce"]["job"], "fast": limits}, "standin", "fast")
    assert differences(TABLE["uce"], story) == []
