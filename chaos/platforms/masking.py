"""Values on a command line that nobody should read in a report: what follows a word such as token or password.

All of it takes time in proportion to the arguments' length, whatever stands in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

MASK = "***"

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_TAIL = 200
"""Characters at the end of a name that say what it is."""

_ENDINGS = ("token", "secret", "password", "passwd", "passphrase", "pwd", "key", "credential", "credentials")
_ALONE = frozenset({"pass", "userpass", "dbpass", "auth", "oauth", "authorization", "cookie", "jwt"})
_MANY = frozenset({"passwords", "secrets", "apikeys"})
_OF_SECRETS = frozenset({"access", "api", "auth", "bearer", "hub", "private", "refresh", "secret"})
"""Before ``tokens`` and ``keys``, and before ``key`` in ``key id``."""

_ORDINARY = frozenset({"monkey", "donkey", "turkey", "hockey", "jockey", "whiskey", "hotkey", "pubkey", "publickey"})
_ORDINARY_OF = frozenset(
    {"num", "max", "min", "per", "total", "pad", "eos", "bos", "unk", "sep", "cls", "mask", "special", "image"}
    | {"public", "sort", "primary", "foreign", "group", "partition"}
)
"""Before ``token``, ``key`` and ``pass``: a count of them, or one that is no secret."""

_DIRECTORIES = frozenset({"PWD", "OLDPWD"})
_IN_QUERY = frozenset({"sig", "signature"})
"""Parameters of an address that are as good as a password there."""

_HINT = re.compile(r"token|secret|pass|pwd|key|credential|auth|cookie|jwt|sig|://", re.IGNORECASE)
_NAME = re.compile(r"[\w.-]+")
_ASSIGNS = re.compile(r"[\"'\])]{0,3}(=|:[ \t]{0,8})")
_GAP = re.compile(r"\s+")
_OPTION = re.compile(r"-[^=\s]+")
_LONG_OPTION = re.compile(r"--[A-Za-z][\w.-]*(?:\Z|[=\s])")
_COMMAND = re.compile(r"-[A-Za-z]{0,8}c|--command")
"""What stands before a command for a shell."""
_SPECIAL = re.compile(r"[\\\"'\s;|&]")
_PARAMETER = re.compile(r"[^&#\s\"']*")
_LINE = re.compile(r"[^\"'\n]*")
_QUOTED = re.compile(r"\"[^\"\\]*(?:\\.[^\"\\]*)*(?:\"|\Z)|'[^']*(?:'|\Z)", re.DOTALL)
_USER = re.compile(r"://([^\s/?#\"']*)@")


def masked(arguments: Sequence[str]) -> tuple[str, ...]:
    """The arguments with secret values replaced: ``--hub_token=x``, ``--password x``, ``API_KEY=x``, ``'Cookie: x'``,
    ``https://user:x@host/?token=x``, and all of these in a command for a shell."""
    shown: list[str] = []
    before, follows = "", False
    for argument in arguments:
        if follows and not _LONG_OPTION.match(argument):
            shown.append(MASK)
            before, follows = "", False
            continue
        follows = _OPTION.fullmatch(argument) is not None and _is_secret(argument)
        shell = _COMMAND.fullmatch(before) is not None
        shown.append(argument if _HINT.search(argument) is None else _mask_inside(argument, shell))
        before = argument
    return tuple(shown)


def _mask_inside(argument: str, shell: bool) -> str:
    """An argument with what is secret in it replaced: of a ``shell`` one words only, of another all that follows."""
    argument = _USER.sub(_without_password, argument)
    shown, end = [], 0
    for start, stop in _values(argument, shell):
        shown += [argument[end:start], MASK]
        end = stop
    return "".join([*shown, argument[end:]])


def _values(argument: str, shell: bool) -> Iterator[tuple[int, int]]:
    """Where secret values begin and end in an argument."""
    at = 0
    while (found := _NAME.search(argument, at)) is not None:
        at = found.end()
        place = _place(argument, found.start(), at, shell)
        if place is not None and place[1] > place[0]:
            yield place
            at = place[1]


def _place(argument: str, begin: int, end: int, shell: bool) -> tuple[int, int] | None:
    """Where the value of a name is that stands in an argument; None where it has none, or no secret one."""
    name, in_query = argument[max(begin, end - _TAIL) : end], argument[begin - 1 : begin] in ("?", "&")
    sign = _ASSIGNS.match(argument, end)
    if sign is None:
        gap = _GAP.match(argument, end) if argument[begin] == "-" else None
        if gap is None or _LONG_OPTION.match(argument, gap.end()) or not _is_secret(name):
            return None
        return gap.end(), _word_end(argument, gap.end())
    if not _is_secret(name) and not (in_query and name.lower().rpartition("-")[2] in _IN_QUERY):
        return None
    value = sign.end()
    if sign[1] != "=":
        # Of `/etc/key:/mnt` and `key:22` nothing is a value, as it is in a header, or in JSON.
        plain = sign[0] == ":" and (begin > 0 or argument[value : value + 1] in ("/", "\\"))
        if plain or value == len(argument):
            return None
        return value, _end_of(_QUOTED if argument[value] in "\"'" else _LINE, argument, value)
    if in_query:
        return value, _end_of(_PARAMETER, argument, value)
    return value, _word_end(argument, value) if shell else len(argument)


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()


def _word_end(text: str, at: int) -> int:
    """Where a word of a shell ends, with its quotes."""
    quote, escaped = "", -1
    for found in _SPECIAL.finditer(text, at):
        place, sign = found.start(), found[0]
        if place == escaped:
            continue
        if sign == "\\":
            escaped = place + 1 if quote != "'" else -1
        elif quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        else:
            return place
    return len(text)


def _without_password(found: re.Match[str]) -> str:
    user, colon, _ = found[1].partition(":")
    if colon:
        return f"://{user}:{MASK}@"
    # A name alone is a secret in the addresses of web services, which take a token for it.
    scheme = found.string[max(0, found.start() - 5) : found.start()]
    return f"://{MASK}@" if scheme.endswith(("http", "https")) else found[0]


def _is_secret(name: str) -> bool:
    """Whether what has this name is a secret, by its last words: ``hub_token``, ``apiKey``, ``AWS_ACCESS_KEY_ID``."""
    if name.lstrip("-") in _DIRECTORIES:
        return False
    words = [word.lower() for word in _WORD.findall(name[-_TAIL:])]
    while words and words[-1].isdigit():
        words.pop()
    third, second, last = ["", "", "", *words][-3:]
    if last == "id":
        return second in ("accesskey", "secretkey", "apikey") or (second == "key" and third in _OF_SECRETS)
    if last in ("tokens", "keys"):
        return second in _OF_SECRETS
    if last in _ORDINARY or (second in _ORDINARY_OF and last in ("token", "key", "pass")):
        return False
    return last.endswith(_ENDINGS) or last in _ALONE or last in _MANY or second + last in _ENDINGS
