"""Bad input, made from good input: edits of bytes, lines and JSON, each decided by a random generator.

The same generator state gives the same bytes, so an input is told by its number alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from random import Random
from typing import Any

MAX_BYTES = 64 << 10
"""Largest input; larger ones are tests of their own (test_bounded_memory.py)."""

WORDS: tuple[bytes, ...] = (
    *(
        b"",
        b"\0",
        b"\n",
        b"\r\n",
        b"\t",
        b" ",
        b"-",
        b"-1",
        b"0",
        b"1",
        b"1e999",
        b"NaN",
        b"Infinity",
        b"null",
        b"true",
    ),
    *(b"2147483648", b"9223372036854775807", b"18446744073709551616", b"9" * 400, b"0x7fffffffffffffff", b"1_000"),
    *(b'"', b"'", b"{", b"}", b"[", b"]", b":", b",", b"[[[[[[[[", b'{"a":{"a":', b"\xff\xfe", b"\xed\xa0\x80"),
    *(b"\\ud800", b"\\u0000", "\u202e".encode(), b"\x1b[2J", b"../", b"../../etc/passwd", b"/etc/passwd", b"/dev/zero"),
    *(b"%s%n", b"${x}", b"&a", b"*a", b"<<: ", b"!!python/object/apply:os.system ", b"--- ", b"a" * 5000),
)
"""What readers have stumbled over before: limits of numbers, brackets, escapes, paths, markup."""

_INTEGERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF)

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3, 7, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**30, 10**400),
    *(0.0, -0.0, 0.5, 1e308, -1e308, 5e-324, float("nan"), float("inf")),
    *(
        "",
        "x",
        "\0",
        "\ud800",
        "\u202e",
        "\x1b[31m",
        "[red]x[/red]",
        "none",
        "auto",
        "TTP",
        "1",
        "-1",
        "NaN",
        "0x1.8p+1",
    ),
    *("..", "../../x", "/etc/passwd", "/dev/zero", "a" * 5000, "rank_0", "0x1p+99999"),
    *([], {}, [[]], [None], [{}], {"": None}, [0, 1, 2], ["x"], {"a": {"b": []}}, [10**400], [[0, 1], [2, 3]]),
)


def mutate_bytes(random: Random, corpus: Sequence[bytes], words: Sequence[bytes] = WORDS, most: int = 5) -> bytes:
    """One of the corpus with one to ``most`` edits of its bytes."""
    content = bytearray(random.choice(corpus))
    for _ in range(random.randint(1, most)):
        _edit_bytes(random, content, corpus, words)
    return bytes(content[:MAX_BYTES])


def _edit_bytes(random: Random, content: bytearray, corpus: Sequence[bytes], words: Sequence[bytes]) -> None:
    at = random.randrange(len(content) + 1)
    end = min(len(content), at + 1 + int(random.expovariate(0.05)))
    match random.randrange(10):
        case 0 if at < len(content):
            content[at] ^= 1 << random.randrange(8)
        case 1 if at < len(content):
            content[at] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
        case 2:
            del content[at:end]
        case 3:
            content[at:at] = content[at:end] * random.choice((1, 1, 2, 50))
        case 4:
            content[at:at] = random.randbytes(random.randint(1, 8))
        case 5:
            content[at:at] = random.choice(words)
        case 6:
            content[at:end] = random.choice(words)
        case 7:
            other = random.choice(corpus)
            start = random.randrange(len(other) + 1)
            content[at:end] = other[start : start + random.randrange(200)]
        case 8:
            del content[at:]
        case _:
            number = random.choice(_INTEGERS)
            size = random.choice((1, 2, 4, 8))
            content[at : at + size] = (number % (1 << 8 * size)).to_bytes(size, random.choice(("little", "big")))


def mutate_lines(random: Random, corpus: Sequence[bytes], words: Sequence[bytes] = WORDS, most: int = 6) -> bytes:
    """One of the corpus with lines removed, repeated, exchanged, taken from another, or with a word replaced in one."""
    lines = random.choice(corpus).splitlines(keepends=True) or [b"\n"]
    for _ in range(random.randint(1, most)):
        at = random.randrange(len(lines)) if lines else 0
        match random.randrange(8):
            case 0 if lines:
                del lines[at]
            case 1 if lines:
                lines.insert(at, lines[random.randrange(len(lines))])
            case 2:
                other = random.choice(corpus).splitlines(keepends=True)
                lines.insert(at, random.choice(other) if other else b"\n")
            case 3 if lines:
                lines[at] = lines[at][: random.randrange(len(lines[at]) + 1)]
            case 4 if lines:
                lines[at] = b"  " * random.randint(0, 3) + lines[at].lstrip()
            case 5 if lines:
                lines[at] = mutate_bytes(random, [lines[at]], words, most=2)
            case _ if lines:
                lines[at] = _exchange_word(random, lines[at], words)
    return b"".join(lines)[:MAX_BYTES]


def mutate_log(random: Random, corpus: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """A log whose lines and words are changed more often than its bytes."""
    mutate = mutate_bytes if random.random() < 0.3 else mutate_lines
    return mutate(random, corpus, words)


def _exchange_word(random: Random, line: bytes, words: Sequence[bytes]) -> bytes:
    parts = line.split(b" ")
    parts[random.randrange(len(parts))] = random.choice(words)
    return b" ".join(parts)


def mutate_json(random: Random, content: bytes, most: int = 3) -> bytes:
    """A JSON document with one to ``most`` values exchanged, moved, removed, added or nested; keys may come twice."""
    data = json.loads(content)
    for _ in range(random.randint(1, most)):
        data = _edit_json(random, data)
    text = json.dumps(data, indent=random.choice((None, 2)))
    if random.random() < 0.05:
        depth = random.choice((10, 500, 5000, 20_000))
        text = text.replace("null", "[" * depth + "]" * depth, 1)
    if random.random() < 0.1:
        text = text.replace("{", '{"run": 1, "run": "x", "token": [],', 1)
    return text.encode("utf-8", "surrogatepass")[:MAX_BYTES]


def _edit_json(random: Random, data: Any) -> Any:
    places = list(_places(data))
    if not places or random.random() < 0.02:
        return deepcopy(random.choice(VALUES))
    parent, key = random.choice(places)
    match random.randrange(7):
        case 0:
            del parent[key]
        case 1 if isinstance(parent, dict):
            parent[random.choice(("x", "", "rank", "step", "..", "\ud800", "9" * 30, random.choice(list(parent))))] = (
                deepcopy(random.choice(VALUES))
            )
        case 1:
            parent.insert(key, deepcopy(random.choice(VALUES)))
        case 2:
            other, name = random.choice(places)
            if key in range(len(parent)) or isinstance(parent, dict):
                parent[key] = json.loads(json.dumps(other[name]))
        case 3 if isinstance(parent[key], int) and not isinstance(parent[key], bool):
            parent[key] += random.choice((-1, 1, 2, 1000, -1000, 10**9, 10**18))
        case 4:
            parent[key] = [parent[key]]
        case _:
            parent[key] = deepcopy(random.choice(VALUES))
    return json.loads(json.dumps(data))


def _places(data: Any) -> list[tuple[Any, Any]]:
    """Every value inside, by what holds it and its key there."""
    found: list[tuple[Any, Any]] = []
    waiting = [data]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict):
            found += [(here, key) for key in here]
            waiting += here.values()
        elif isinstance(here, list):
            found += [(here, index) for index in range(len(here))]
            waiting += here
    return found


def mutate_json_lines(random: Random, corpus: Sequence[bytes]) -> bytes:
    """One of the corpus of JSON lines, edited as JSON, as lines, or as bytes."""
    if random.random() < 0.3:
        return mutate_lines(random, corpus)
    lines = random.choice(corpus).splitlines(keepends=True)
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(lines))
        try:
            lines[at] = mutate_json(random, lines[at], most=2).replace(b"\n", b"") + b"\n"
        except (ValueError, RecursionError):  # spoilt before
            lines[at] = mutate_bytes(random, [lines[at]])
    return b"".join(lines)[:MAX_BYTES]
