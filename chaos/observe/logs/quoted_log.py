"""Reader of lines as documents quote them: the messages of MindFormers and MindIO TFT alone, without time and place.

Such a line may stand in any program's output, so it is a fact only in a log without any program's prefix: an
excerpt, as in documents or in a user's report.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.log_reader import LogReader
from chaos.observe.logs.losses.training_line import read_training_line
from chaos.observe.logs.mindformers_log import MESSAGES
from chaos.observe.logs.patterns import find_event
from chaos.observe.logs.ttp.log import MESSAGES as OF_SDK

# A path alone says nothing.
_TABLE = (*(entry for entry in MESSAGES if entry.kind != "resume.candidate"), *OF_SDK)
_WEAK = ("checkpoint.holds", "resume.from", "train.epochs")
# What is indented shows a source, and these begin a line of another form: a time, a level, an error.
_OTHER = re.compile(
    r"\s|\d{4}[-/]|\[(?:[A-Z]+\] {1,8}\d|[A-Z]+\] [A-Z]\w*\()|\w{1,60}(?:Error|Exception): |- [A-Z]+ - "
)

# Who or what a message is about, such as "controller:0 execute ", "[stop] " and "check mindx ".
_HEAD = re.compile(r"(?:(?!: )[\w:,\[\] -]){0,60}")


class QuotedLogReader(LogReader):
    """Messages of MindFormers and MindIO TFT without a prefix. The kinds are the same as with a prefix."""

    name = "quoted"
    own_rank = True
    only_when_chosen = True

    def recognises(self, first_lines: Sequence[str]) -> bool:
        """Return whether such a line, or the line of a step, is among them."""
        return any(
            read_training_line(line) is not None or ((event := self.read(line)) is not None and event.kind not in _WEAK)
            for line in first_lines
        )

    def read(self, line: str) -> LogEvent | None:
        """Return the event of a line, None if its message is unknown."""
        return None if _OTHER.match(line) else find_event(_TABLE, line, None, None, _HEAD)
