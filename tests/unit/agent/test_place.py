"""The agent finds out from msrun's environment which process of the job it is in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chaos.agent.configuration import Configuration, Place, place_of, read_configuration


@pytest.mark.parametrize(
    ("environment", "place"),
    [
        ({}, Place("other", None, None)),
        ({"MS_ROLE": "MS_WORKER", "MS_NODE_ID": "2", "MS_WORKER_NUM": "4"}, Place("rank", 2, 4)),
        ({"MS_ROLE": "MS_WORKER", "RANK_ID": "5", "RANK_SIZE": "8"}, Place("rank", 5, 8)),
        ({"MS_ROLE": "MS_WORKER", "MS_NODE_ID": "0", "RANK_ID": "7", "MS_WORKER_NUM": "2"}, Place("rank", 0, 2)),
        ({"MS_ROLE": "MS_SCHED", "MS_NODE_ID": "0", "MS_WORKER_NUM": "4"}, Place("scheduler", None, 4)),
        ({"MS_ROLE": "MS_WORKER", "MS_WORKER_NUM": "4"}, Place("other", None, 4)),
        ({"MS_ROLE": "MS_WORKER", "MS_NODE_ID": "-1", "MS_WORKER_NUM": "x"}, Place("other", None, None)),
        # A shell's own RANK_ID reaches the launcher too.
        ({"RANK_ID": "3", "RANK_SIZE": "8"}, Place("other", None, 8)),
    ],
)
def test_the_role_comes_from_msruns_environment(environment: dict[str, str], place: Place) -> None:
    assert place_of(environment) == place


def test_a_configuration_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "agent.json"
    path.write_text(json.dumps({"run": "r", "attempt": "train", "history": "/h", "settings": {"timings": "fast"}}))
    assert read_configuration(str(path)) == Configuration("r", "train", "/h", settings={"timings": "fast"})


@pytest.mark.parametrize("content", [{"run": "r"}, {"run": "r", "attempt": "a", "history": "h", "colour": 1}])
def test_another_files_content_is_refused_by_name(tmp_path: Path, content: dict[str, object]) -> None:
    path = tmp_path / "agent.json"
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=f"{path}: not a configuration of this agent"):
        read_configuration(str(path))
