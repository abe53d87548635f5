"""Secrets on a command line are in no report; what is none is shown as it is."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from chaos.platforms.masking import MASK, masked
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


SECRET = "s3cr3t"


@pytest.mark.parametrize(
    "arguments",
    [
        ["curl", "--header", f"Authorization: Bearer {SECRET}"],
        ["curl", "-H", f"X-Api-Key: {SECRET}"],
        ["curl", "-H", f"PRIVATE-TOKEN:{SECRET}"],
        ["curl", "-H", f"cookie: a=1; b={SECRET}"],
        [f"--header=Authorization: Basic {SECRET}"],
        [f"https://user:{SECRET}@host/path"],
        [f"https://user:a@{SECRET}@host/path"],
        [f"https://{SECRET}@host/path"],
        [f"--url=postgres://user:{SECRET}@host:5432/db"],
        [f"https://host/?seed=3&token={SECRET}&b=1"],
        [f"https://host/?X-Amz-Signature={SECRET}"],
        ["--env", f"HUB_TOKEN={SECRET}"],
        [f"--env=HUB_TOKEN={SECRET}"],
        ["-e", f"API_KEY={SECRET}"],
        [f"-eAPI_KEY={SECRET} and more"],
        ["--api-key", SECRET],
        [f"--apikey={SECRET}"],
        [f"apiKey={SECRET}"],
        ["--apiKey", SECRET],
        [f"accessKeyId={SECRET}"],
        [f"AWS_ACCESS_KEY_ID={SECRET}"],
        [f"AWS_SECRET_ACCESS_KEY={SECRET}"],
        ["--secret-key", SECRET],
        ["--secretKey", SECRET],
        ["--api-tokens", SECRET],
        [f"TOKEN2={SECRET}"],
        [f"dbPassWord={SECRET}"],
        ["--pass-phrase", SECRET],
        ["--password", f"-{SECRET}"],
        ["--password", f"--{SECRET}!"],
        ["--password", ""],
        [f"PASSWORD=one {SECRET}"],
        ["sh", "-c", f"PASSWORD={SECRET} cmd --seed 3"],
        ["bash", "-lc", f"cd x && cmd --token {SECRET} --seed 3"],
        ["bash", "-c", f'TOKEN=\'a {SECRET}\' PASSWORD="a \\" {SECRET}" cmd'],
        ["ssh", "host", f"TOKEN={SECRET} cmd"],
        ["sh", "-c", f"curl -H 'Authorization: Bearer {SECRET}' https://u:{SECRET}@host/?key={SECRET}&x=1"],
        ["--json", f'{{"seed": 3, "password": "a \\" {SECRET}", "x": 1}}'],
        ["--json", f'{{"password":"{SECRET}"}}'],
        [f"--{'x' * 300}_password={SECRET}"],
        [f"--{'x' * 300}-token", SECRET],
        [f"--{'x-' * 300}y={'z' * 300}", f"A{'_B' * 300}_KEY={SECRET}"],
    ],
)
def test_no_secret_is_shown(arguments: list[str]) -> None:
    shown = masked(arguments)
    assert len(shown) == len(arguments)
    assert SECRET not in " ".join(shown)
    assert MASK in " ".join(shown)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--tokenizer", "x"],
        ["--max_tokens", "5"],
        ["--num-tokens=3"],
        ["--tokens", "5"],
        ["--key_padding", "1"],
        ["--keyboard", "de"],
        ["monkey=1"],
        ["author=me"],
        ["--authors", "me"],
        ["--passes", "3"],
        ["--num-pass", "3"],
        ["--bypass=yes"],
        ["--eos_token", "</s>"],
        ["--pad-token=0"],
        ["--token-file", "/run/token"],
        ["PASSWORD_FILE=/run/password"],
        ["--password-stdin", "x"],
        ["--sort-key", "name"],
        ["env", "PWD=/root", "cmd"],
        ["-v", "/etc/key:/mnt"],
        ["host:22", "key", "x"],
        ["-p", "x"],
        ["ssh://git@host/repository"],
        ["https://host/path?seed=3#token"],
        ["sh", "-c", "cd /tokens && train.py --max_tokens 5 --tokenizer x"],
        ["--token", "--verbose"],
        ["--password", "--user=me"],
        [],
        [""],
    ],
)
def test_what_is_ordinary_is_shown_as_it_is(arguments: list[str]) -> None:
    assert masked(arguments) == tuple(arguments)


def test_of_a_command_for_a_shell_the_rest_is_shown() -> None:
    command = "PASSWORD=x cmd --token 'y z' --seed 3; curl https://u:p@host/?token=x&b=2 -H 'Cookie: z' -v"
    shown = "PASSWORD=*** cmd --token *** --seed 3; curl https://u:***@host/?token=***&b=2 -H 'Cookie: ***' -v"
    assert masked(["sh", "-c", command]) == ("sh", "-c", shown)
    assert masked(['{"password": "x y", "seed": 3}']) == ('{"password": ***, "seed": 3}',)


@pytest.mark.parametrize(
    "piece",
    ["a", "key", "token= ", "://", "a@", "--token ", "key: ", "token='\"", "-", "token\\", "&token=", " ", 'key:"\\a'],
)
@pytest.mark.parametrize("before", ["-c", "x"])
def test_ten_times_the_length_takes_about_ten_times_the_time(piece: str, before: str) -> None:
    def seconds(size: int) -> float:
        argument = "key " + piece * (size // len(piece)) + "://"
        begin = time.process_time()
        masked([before, argument])
        return time.process_time() - begin

    # Were it the square, the longer one would take a hundred times as long, which is minutes for most of these.
    assert seconds(2_000_000) < 30 * max(seconds(200_000), 0.01)


def test_a_command_line_is_never_read_with_its_secrets() -> None:
    arguments = [sys.executable, "-c", "input()", "--hub_token=s3cr3t"]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, env=dict(os.environ)) as process:
        seen = wait_for("its arguments", lambda: command_line(process.pid), seconds=20)  # empty while it is being made
        process.communicate(b"\n")
    assert seen[-1] == "--hub_token=***"
