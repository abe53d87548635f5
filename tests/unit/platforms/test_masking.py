"""Secrets on a command line are in no report; what is none is shown as it is."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from chaos.platforms.masking import masked
from chaos.platforms.procfs import command_line
from chaos.run.wait import wait_for


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("--hub_token=abc", "--hub_token=***"),
        ("--hub-token abc next", "--hub-token *** next"),
        ("--password abc", "--password ***"),
        ("--passwd=abc", "--passwd=***"),
        ("API_KEY=abc", "API_KEY=***"),
        ("--aws.secret=abc", "--aws.secret=***"),
        ("--token --verbose", "--token --verbose"),
        ("--config=a.yaml --seed 3", "--config=a.yaml --seed 3"),
        ("--tokenizer=llama --keyword x", "--tokenizer=llama --keyword x"),
        ("--max_tokens=512", "--max_tokens=512"),
        ("train.py key", "train.py key"),
        ("--key=a=b", "--key=***"),
    ],
)
def test_only_the_values_of_secret_options_are_masked(given: str, shown: str) -> None:
    assert masked(given.split()) == tuple(shown.split())


def test_a_command_line_is_never_read_with_its_secrets() -> None:
    arguments = [sys.executable, "-c", "input()", "--hub_token=s3cr3t"]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, env=dict(os.environ)) as process:
        seen = wait_for("its arguments", lambda: command_line(process.pid), seconds=20)  # empty while it is being made
        process.communicate(b"\n")
    assert seen[-1] == "--hub_token=***"
