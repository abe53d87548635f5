"""The state of a run in progress, from what its directory holds so far."""

from chaos.live.as_json import as_json
from chaos.live.follower import Follower, follow
from chaos.live.holders import waiting_for_cores
from chaos.live.progressing import live_runs
from chaos.live.thread import REST

__all__ = ["REST", "Follower", "as_json", "follow", "live_runs", "waiting_for_cores"]
