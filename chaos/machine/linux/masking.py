"""Secret values on a command line, masked in reports: the values after words such as token or password.

Of a command for a shell only the word is masked that holds the value; elsewhere mostly all of the following text:
masking too much is the lesser error. All of it takes time in proportion to the arguments' length, whatever they
contain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

MASK = "***"

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_TAIL = 200
"""Characters at the end of a name that decide its kind."""

_ENDINGS = (
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "key",
    "credential",
    "credentials",
)
_ALONE = frozenset(
    {"pass", "userpass", "dbpass", "sshpass", "mysqlpass", "rootpass", "auth", "oauth", "authorization", "cookie"}
    | {"jwt", "passwords", "secrets", "apikeys"}
)
_OF_SECRETS = frozenset({"access", "api", "auth", "bearer", "hub", "private", "refresh", "secret"})
"""Before ``tokens`` and ``keys``, and before ``key`` in ``key id``."""

_ORDINARY = frozenset({"monkey", "donkey", "turkey", "hockey", "jockey", "whiskey", "pubkey", "publickey"})
_COUNTS = frozenset({"num", "max", "min", "per", "total"})
_ORDINARY_OF = {
    "token": _COUNTS | {"pad", "eos", "bos", "unk", "sep", "cls", "mask", "masked"},
    "pass": _COUNTS,
    "key": frozenset({"public", "sort", "foreign", "partition"}),
}
_ORDINARY_KEYS = frozenset({"", "loss", "metric", "monitor"})
"""Before ``key`` in JSON, YAML and the like, where it is most often the name of an entry."""

_DIRECTORIES = frozenset({"PWD", "OLDPWD"})
_IN_QUERY = frozenset({"sig", "signature"})
"""Parameters of a URL that are as good as a password there."""

_HINT = re.compile(r"token|secret|pass|pwd|key|credential|auth|cookie|jwt|sig|://", re.IGNORECASE)
_NAME = re.compile(r"[\w.-]+")
_ASSIGNS = re.compile(r"[\\\"'\])]{0,6}(?:=|[ \t]{1,8}={1,2}[ \t]{0,8}|[ \t]{0,8}(:)[ \t]{0,8})")
_GAP = re.compile(r"(?:\s|\\\n)+")
_OPTION = re.compile(r"-[^=\s]+")
_NEXT_OPTION = re.compile(r"--[A-Za-z][\w.-]*(?:\Z|[=\s])|-[A-Za-z](?:\Z|\s)")
_USER = re.compile(r"://([^\s/?#\"']*)@")
_IN_JSON = re.compile(
    r"(?:\"[^\"\\]*(?:\\.[^\"\\]*)*\"|'[^'\\]*(?:\\.[^'\\]*)*'|[\w.+*-]+)(?=\s*(?:[,}\]]|\Z))", re.DOTALL
)

_SHELL = re.compile(r"(?:.*/)?-?(?:ba|da|z|k|a)?sh", re.DOTALL)
_OTHER_USER = re.compile(r"(?:.*/)?(?:su|runuser)", re.DOTALL)
_COMMAND = re.compile(r"-[A-Za-z]{0,8}c|--command")
"""Options before a command for a shell."""
_SETS = re.compile(r"[-+][A-Za-z]{0,8}[oO]")
"""An option of a shell with a word after it: ``-o pipefail``."""
_SPECIAL = re.compile(r"[\\\"'\s;|&`(#]|\$[('{]|<<")
_PLAIN_VARIABLE = re.compile(r"\$\{\w+\}")
_BREAKS = " \t\r\n;|&("


def masked(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments with secret values replaced.

    Examples: ``--hub_token=x``, ``--password x``, ``API_KEY=x``, ``'Cookie: x'``, ``https://user:x@host/?token=x``, and
    all of these in a command for a shell. A masked value stays as it is.
    """
    shown: list[str] = []
    before, of = "", ""
    for argument in arguments:
        if _OPTION.fullmatch(before) and not _NEXT_OPTION.match(argument) and _is_secret(before, argument):
            shown.append(MASK)
            before, of = "", ""
            continue
        command = of != "" and _COMMAND.fullmatch(before) is not None
        shown.append(_mask_inside(argument, command) if _HINT.search(argument) else argument)
        of = _program(argument, before, of)
        before = argument
    return tuple(shown)


def _program(argument: str, before: str, of: str) -> str:
    """Return the kind of shell whose option may follow this argument: ``sh``, ``su``, or none."""
    if _OTHER_USER.fullmatch(argument):
        return "su"
    if _SHELL.fullmatch(argument):
        return "sh"
    return of if of == "su" or argument[:1] in ("-", "+") or _SETS.fullmatch(before) else ""


def _mask_inside(argument: str, command: bool) -> str:
    argument = _USER.sub(_without_password, argument)
    shown, end = [], 0
    for start, stop, quote in _values(argument, _Words(argument) if command else None):
        shown += [argument[end:start], MASK, quote]
        end = stop
    return "".join([*shown, argument[end:]])


def _values(argument: str, words: _Words | None) -> Iterator[tuple[int, int, str]]:
    """Yield the begin and end of each secret value in an argument, and the quote that has to be closed after it."""
    at = 0
    while (match := _NAME.search(argument, at)) is not None:
        at = match.end()
        value, json = _value(argument, match.start(), at)
        if value is None or value == len(argument):
            continue
        end, quote = len(argument), ""
        if words is not None:
            end, quote = words.end(value)
        elif json and (whole := _IN_JSON.match(argument, value)) is not None:
            end = whole.end()
        if end > value:
            yield value, end, quote
            at = end


def _value(argument: str, begin: int, end: int) -> tuple[int | None, bool]:
    """Return where the value of a name begins, None if it is no secret; and whether the name is a JSON key."""
    name = argument[max(begin, end - _TAIL) : end]
    sign = _ASSIGNS.match(argument, end)
    if sign is None:
        gap = _GAP.match(argument, end) if argument[begin] == "-" else None
        if gap is None or _NEXT_OPTION.match(argument, gap.end()):
            return None, False
        return gap.end() if _is_secret(name, argument[gap.end() : gap.end() + 1]) else None, False
    value = sign.end()
    in_query = argument[begin - 1 : begin] in ("?", "&") and name.lower().rpartition("-")[2] in _IN_QUERY
    if not in_query and not _is_secret(name, argument[value : value + 1], in_text=sign[1] is not None):
        return None, False
    # `/etc/key:/mnt` and `key:22` hold no value; a header does, and so does JSON.
    starts = begin == 0 or argument[begin - 1] in "\"'={"
    if sign[0] == ":" and (not starts or argument[value : value + 1] in ("/", "\\")):
        return None, False
    return value, sign[1] is not None and sign[0][0] in "\"'"


class _Words:
    """The words of a command for a shell, looked up from its begin to its end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._signs = _SPECIAL.finditer(text)
        self._quote = ""
        self._escaped = -1

    def end(self, at: int) -> tuple[int, str]:
        """Return the end of the word at a place, and the quote that is open at that place.

        Text outside simple words (the output of another command, a comment, a here document) may hold any quotes: from
        there on all is one word.
        """
        opened = None
        for match in self._signs:
            place, sign = match.start(), match[0]
            if opened is None and place >= at:
                opened = self._quote
            if place == self._escaped and len(sign) == 1:
                continue
            if self._quote == "'":
                self._quote = "" if sign[-1] == "'" else "'"
            elif sign == "\\":
                self._escaped = place + 1
            elif self._odd(place, sign):
                return len(self._text), opened or ""
            elif sign in ('"', "'"):
                self._quote = "" if sign == self._quote else self._quote or sign
            elif not self._quote and place >= at and sign in _BREAKS:
                return place, opened or ""
        return len(self._text), self._quote if opened is None else opened

    def _odd(self, place: int, sign: str) -> bool:
        if sign == "${":
            return _PLAIN_VARIABLE.match(self._text, place) is None
        if sign in ("`", "$("):
            return True
        if self._quote:
            return False
        first = place == 0 or self._text[place - 1] in _BREAKS
        return sign in ("$'", "<<") or (sign == "(" and not first) or (sign == "#" and first)


def _without_password(match: re.Match[str]) -> str:
    user, colon, _ = match[1].partition(":")
    if colon:
        return f"://{user}:{MASK}@"
    # A name alone is a secret in the URLs of web services, which take a token for it.
    scheme = match.string[max(0, match.start() - 5) : match.start()]
    return f"://{MASK}@" if scheme.endswith(("http", "https")) else match[0]


def _is_secret(name: str, value: str, *, in_text: bool = False) -> bool:
    """Return whether a name's value is secret, by its last words: ``hub_token``, ``apiKey``, ``AWS_ACCESS_KEY_ID``."""
    if name.lstrip("-") in _DIRECTORIES:
        return not value.startswith("/")
    words = [word.lower() for word in _WORD.findall(name[-_TAIL:])]
    while words and words[-1].isdigit():
        words.pop()
    third, second, last = ["", "", "", *words][-3:]
    if last == "id":
        return second in ("accesskey", "secretkey", "apikey") or (second == "key" and third in _OF_SECRETS)
    if last in ("tokens", "keys"):
        return second in _OF_SECRETS
    if last in _ORDINARY or second in _ORDINARY_OF.get(last, ()):
        return False
    if in_text and last == "key" and second in _ORDINARY_KEYS:
        return False
    # Only together do the words show in `passPhrase` and `tOkEn`.
    return "".join(words).endswith(_ENDINGS) or last in _ALONE
