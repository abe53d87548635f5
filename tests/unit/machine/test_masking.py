"""Secrets on a command line are in no report; what is none is shown as it is."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.base.wait import wait_for
from chaos.machine.linux.masking import MASK, masked
from chaos.machine.linux.procfs import command_line
from tests.kit.growing_cost import MOST_GROWTH, TIMES, growth

pytestmark = pytest.mark.processes


@pytest.mark.parametrize(
    ("line", "shown"),
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
def test_only_the_values_of_secret_options_are_masked(line: str, shown: str) -> None:
    assert masked(line.split()) == tuple(shown.split())


SECRET = "s3cr3t"


SECRETS = [
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
    # Joined to another command, or to a parameter of an address.
    ["bash", "-c", f"cd /x&&HF_TOKEN='hf_{SECRET}' python t.py"],
    ["bash", "-c", f'true &&PASSWORD="{SECRET}" run'],
    ["bash", "-c", f"a&TOKEN=ab#{SECRET} run"],
    ["x", f"password&token='{SECRET}'"],
    [f"https://host/?token=a#{SECRET}"],
    [f"https://host/?a=1&token='{SECRET}'"],
    ["bash", "-c", f"curl https://host/?token=ab'{SECRET}'"],
    # Keys that are called primary and so on are keys.
    [f"--primary-key={SECRET}"],
    ["--primary_key", SECRET],
    [f"AZURE_COSMOS_PRIMARY_KEY={SECRET}"],
    [f"primaryKey={SECRET}"],
    [f"GROUP_KEY={SECRET}"],
    [f"SPECIAL_KEY={SECRET}"],
    [f"IMAGE_KEY={SECRET}"],
    [f"MASK_KEY={SECRET}"],
    ["--mask_key", SECRET],
    [f"--special_token={SECRET}"],
    [f"IMAGE_TOKEN={SECRET}"],
    [f"--image-pull-secret={SECRET}"],
    [f"HOTKEY={SECRET}"],
    [f"a_S3key={SECRET}"],
    [f"--tOkEn={SECRET}"],
    [f"--passcode={SECRET}"],
    [f"SSHPASS={SECRET}"],
    [f"AccountName=a;AccountKey={SECRET}==;EndpointSuffix=x"],
    # What other commands, functions and quotes hold.
    ["bash", "-c", f"export TOKEN=$(echo {SECRET} | base64 -d) run"],
    ["bash", "-c", f'export TOKEN="$(echo "a b" {SECRET} | base64 -d)" run'],
    ["bash", "-c", f"TOKEN=`echo {SECRET}` run"],
    ["bash", "-c", f"TOKEN=${{X:-a {SECRET}}} run"],
    ["bash", "-c", f"TOKEN=(a {SECRET}) run"],
    ["bash", "-c", f"TOKEN=$'a\\'b {SECRET}' run"],
    ["bash", "-c", f"""X="$(echo "it's")" TOKEN='a {SECRET}' run"""],
    ["bash", "-c", f"# don't\nTOKEN='a {SECRET}' run"],
    ["bash", "-c", f"cat <<E\ndon't\nE\nTOKEN='a {SECRET}' run"],
    ["bash", "-c", f'export "TOKEN=a {SECRET}" x'],
    ["bash", "-c", f"docker run -e 'TOKEN=a {SECRET}'\"b {SECRET}\" x"],
    ["bash", "-c", f'bash -c "TOKEN=\\"a {SECRET}\\" run"'],
    ["bash", "-c", f"run --token \\\n  {SECRET} x"],
    ["bash", "-c", f"echo 'a$' TOKEN='a {SECRET}' x"],
    ["bash", "-c", f"echo \\$'a' TOKEN='a {SECRET}' x"],
    ["python", "-c", f"token=f('a', '{SECRET}')"],
    ["python", "-c", f"login(token=('{SECRET}'))"],
    ["python", "-c", f"login(token = '{SECRET}')"],
    ["python", "-c", f"t(password=('a' '{SECRET}'))"],
    ["python", "-c", f"f({{'token': g('a', '{SECRET}')}})"],
    ["psql", "-c", f"password=my {SECRET}"],
    ["tool", "-c", f"password=my {SECRET} phrase"],
    ["bash", "train.sh", "-c", f"password=my {SECRET}"],
    ["ssh", "host", f"run --token 'a {SECRET}'"],
    [f"--command=run --token 'a {SECRET}'"],
    # A directory begins with a slash.
    ["--PWD", SECRET],
    [f"PWD={SECRET}"],
    ["sh", "-c", f"PWD={SECRET} run"],
    # Headers and JSON.
    ["-H", f'Cookie: session="{SECRET}"; b="{SECRET}"'],
    ["-H", f'Authorization: Digest username="bob", response="{SECRET}"'],
    ["sh", "-c", f"curl -H 'PRIVATE-TOKEN:{SECRET}' x"],
    [f"--header=PRIVATE-TOKEN:{SECRET}"],
    ["sh", "-c", f'curl -d "{{\\"token\\": \\"{SECRET}\\"}}" x'],
    ["ssh", "host", f'curl -d "{{\\"token\\": \\"{SECRET}\\"}}" x'],
    ["--json", f'{{"secrets": ["a", "{SECRET}"], "x": 1}}'],
    ["--json", f'{{"credentials": {{"a": "b", "c": "{SECRET}"}}}}'],
    ["--json", f'{{"primaryKey" : "{SECRET}"}}'],
    ["--json", f'{{"token": "a" "{SECRET}"}}'],
    ["--yaml", f"private_key: |\n  a\n  {SECRET}"],
]


@pytest.mark.parametrize("arguments", SECRETS)
def test_no_secret_is_shown(arguments: list[str]) -> None:
    shown = masked(arguments)
    assert len(shown) == len(arguments)
    assert SECRET not in " ".join(shown)
    assert MASK in " ".join(shown)


ORDINARY = [
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
    ["--use_auth_token", "-m", "mymodule"],
    ["--no-auth", "-c", "bash cmd"],
    ["--token", "-v", "train.py"],
    ["bash", "-c", "run --use_auth_token -m mymodule"],
    ["--PWD", "/root"],
    ['--config={"key": "loss", "lr": 1}'],
    ["--config", '{"tokenizer":"x","max_tokens":5,"key":"loss","vocab":{"pad_token":"<pad>"}}'],
    ["--callbacks", "[{type: MFLossMonitor, key: 1}]"],
    ["--monitor=loss_key: x"],
    ["a: key: b"],
    ["SORT_KEY=x", "PARTITION_KEY=x", "SSH_PUBKEY=x", "--public-key=x", "--foreign_key", "x"],
    ["CLS_TOKEN=x", "--masked_token", "x", "--eosToken=x", "--num_token=3"],
    ["--init_method=tcp://1.2.3.4:29500", "tcp://host:1/x@y", "obs://bucket@x/y", "git@github.com:a/b"],
    ["bash", "-c", "for key in a b; do echo $key; done"],
    ["python", "-c", "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7)"],
]


@pytest.mark.parametrize("arguments", ORDINARY)
def test_what_is_ordinary_is_shown_as_it_is(arguments: list[str]) -> None:
    assert masked(arguments) == tuple(arguments)


def test_of_a_command_for_a_shell_the_rest_is_shown() -> None:
    command = "PASSWORD=x cmd --token 'y z' --seed 3; curl https://u:p@host/?token=x&b=2 -H 'Cookie: z' -v"
    shown = "PASSWORD=*** cmd --token *** --seed 3; curl https://u:***@host/?token=***&b=2 -H 'Cookie: ***' -v"
    assert masked(["sh", "-c", command]) == ("sh", "-c", shown)
    assert masked(['{"password": "x y", "seed": 3}']) == ('{"password": ***, "seed": 3}',)


@pytest.mark.parametrize(
    "shell",
    [
        ["/bin/bash", "-c"],
        ["sh", "-e", "-c"],
        ["bash", "-eo", "pipefail", "-c"],
        ["bash", "-o", "pipefail", "-lc"],
        ["su", "-", "user", "-c"],
        ["runuser", "user", "--command"],
        ["env", "X=1", "zsh", "-c"],
    ],
)
def test_of_a_command_for_any_shell_a_word_is_masked(shell: list[str]) -> None:
    command = "X=${Y} TOKEN='a b' run --lr 1 $(hostname)"
    assert masked([*shell, command]) == (*shell, "X=${Y} TOKEN=*** run --lr 1 $(hostname)")
    # After what may hold any quotes no word is certain.
    assert masked([*shell, f"N=$(hostname) {command}"]) == (*shell, "N=$(hostname) X=${Y} TOKEN=***")
    assert masked([*shell, 'export "TOKEN=a b" && run']) == (*shell, 'export "TOKEN=***" && run')


def test_json_stays_legible() -> None:
    given = '{"key":1,"api_key":"x","token":null,"lr":1}'
    assert masked([given]) == ('{"key":1,"api_key":***,"token":***,"lr":1}',)


_PIECES = ["token", "key", "=", ": ", '"', "'", "\\", " ", "a", "--token ", "$(", ")", "${", "`", "#", "&", "?", ";"]
_PIECES += ["://", "u:p@", "https", "{", "}", ",", "***", "-v", "<<", "(", "PWD=", "/", "\n", "bash", "Cookie: "]
_TEXTS = st.lists(st.sampled_from(_PIECES), max_size=12).map("".join)
_KNOWN = [one for table in (SECRETS, ORDINARY) for one in table]
_LINES = st.sampled_from(_KNOWN) | st.lists(_TEXTS | st.sampled_from(["--token", "sh", "-c"]), max_size=5)


@given(_LINES, _LINES, st.sampled_from([[], ["sh", "-c"], ["python", "-c"], ["--token"]]))
def test_what_is_masked_already_stays_as_it_is(first: list[str], second: list[str], before: list[str]) -> None:
    shown = masked([*before, *first, *second])
    assert masked(shown) == shown


@pytest.mark.parametrize("arguments", _KNOWN)
def test_what_is_masked_already_stays_as_it_is_in_every_known_case(arguments: list[str]) -> None:
    shown = masked(arguments)
    assert masked(shown) == shown
    for argument in arguments:
        shown = masked(["sh", "-c", argument])
        assert masked(shown) == shown


_REPEATED = ["a", "key", "token= ", "://", "a@", "--token ", "key: ", "token='\"", "-", "token\\", "&token=", " "]
_REPEATED += ['key:"\\a', "--PWD /x ", "PWD=/x ", "$(", "${a", "'key= ", "https://a?token=", '"token":"', "--token --"]
_REPEATED += ["token= ;", "#"]


@pytest.mark.parametrize("piece", _REPEATED)
@pytest.mark.parametrize("before", [["sh", "-c"], ["x"]])
def test_a_longer_argument_takes_longer_in_proportion(piece: str, before: list[str]) -> None:
    short, long = ("key " + piece * (size // len(piece)) + "://" for size in (4_000, 4_000 * TIMES))
    assert growth(lambda argument: masked([*before, argument]), short, long) < MOST_GROWTH


def test_a_command_line_is_never_read_with_its_secrets() -> None:
    arguments = [sys.executable, "-c", "input()", "--hub_token=s3cr3t"]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, env=dict(os.environ)) as process:
        seen = wait_for("its arguments", lambda: command_line(process.pid), seconds=60)  # empty while it is being made
        process.communicate(b"\n")
    assert seen[-1] == "--hub_token=***"
