"""Paths of this machine become those of the host, and nothing else of this machine goes there."""

from __future__ import annotations

import json

import pytest

from chaos.platforms.ssh.translation import Translation

THERE = Translation(
    {
        "/home/me/reports/run-1": "/var/tmp/chaos-x/run",
        "/home/me/src": "/var/tmp/chaos-x/code",
        "/home/me/src/chaos": "/var/tmp/chaos-x/code/chaos",
        "/opt/here/bin/python": "/opt/there/bin/python3",
        "/opt/here/bin": "/opt/there/bin",
        "/var/tmp": "/elsewhere",
    }
)


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("/home/me/reports/run-1/logs/train", "/var/tmp/chaos-x/run/logs/train"),
        ("--log_dir=/home/me/reports/run-1/logs", "--log_dir=/var/tmp/chaos-x/run/logs"),
        ("/home/me/reports/run-10/logs", "/home/me/reports/run-10/logs"),
        ("/home/me/reports/run-1.old", "/home/me/reports/run-1.old"),
        ("/x/home/me/src", "/x/home/me/src"),
        ("/home/me/src/chaos/a.py:/home/me/src", "/var/tmp/chaos-x/code/chaos/a.py:/var/tmp/chaos-x/code"),
        ("/opt/here/bin/python", "/opt/there/bin/python3"),
        ("/opt/here/bin/msrun", "/opt/there/bin/msrun"),
        ("/opt/here/bin/python3.11", "/opt/there/bin/python3.11"),
        ("12", "12"),
    ],
)
def test_only_whole_paths_are_translated_and_only_once(here: str, there: str) -> None:
    assert THERE.text(here) == there


def test_strings_of_a_document_are_translated_wherever_they_are() -> None:
    text = json.dumps({"socket": "/home/me/reports/run-1/é", "list": ["/home/me/src", 3], "none": None})
    assert json.loads(THERE.document("agent.json", text)) == {
        "socket": "/var/tmp/chaos-x/run/é",
        "list": ["/var/tmp/chaos-x/code", 3],
        "none": None,
    }
    assert THERE.document("secret", "/home/me/src") == "/var/tmp/chaos-x/code"
