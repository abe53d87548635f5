"""Checks the message of a commit: a short subject in the imperative, and the reason in the body.

    python3 .ci/commit_subject.py .git/COMMIT_EDITMSG

Standard library only. Prints what is wrong, and ends with 1 then.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

LONGEST = 60

_MADE_BY_GIT = re.compile(r"(Merge|Revert|fixup!|squash!|amend!) ")
_CUT = re.compile(r"^# -+ >8 -+$.*", re.MULTILINE | re.DOTALL)
_NO_COMMAND = re.compile(r"(The|An?|It|This|When|Where|[A-Z]\w*(ed|ing)) ")
_COMMAND_ALL_THE_SAME = re.compile(r"(\w*[Cc]eed|Bring|Embed|Feed|Need|Ping|Seed|Shed|Speed|String) ")


def problems(message: str) -> Iterator[str]:
    """What is wrong with a message, as an editor or ``git commit -m`` leaves it."""
    lines = [line for line in _CUT.sub("", message).splitlines() if not line.startswith("#")]
    subject, *rest = "\n".join(lines).strip("\n").split("\n")
    if _MADE_BY_GIT.match(subject):
        return
    if len(subject) > LONGEST:
        yield f"the subject has {len(subject)} characters; at most {LONGEST} are shown everywhere"
    if not re.match(r"[A-Z]", subject):
        yield "the subject begins with a verb and a capital letter"
    elif _NO_COMMAND.match(subject) and not _COMMAND_ALL_THE_SAME.match(subject):
        yield f"the subject is an order, as in 'Refuse a fault without proof'; it begins with {subject.split()[0]!r}"
    if subject.endswith("."):
        yield "the subject ends without a full stop"
    if rest and rest[0]:
        yield "an empty line separates the subject from the body"


def main(path: str) -> int:
    """Check the message in a file."""
    found = list(problems(Path(path).read_text("utf-8")))
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
