"""The eight bugs that are planted into each job: what each of them is, and the reason that must be found."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Said:
    """A statement that decides a verdict: its check, and its words."""

    check: str
    text: str


@dataclass(frozen=True)
class Bug:
    """A bug; ``reasons`` are the right ones: a check, and a regular expression for what it says.

    The check of the headline must be among them, and one of its statements that decide the verdict must match.
    """

    id: str
    what: str
    reasons: tuple[tuple[str, str], ...]

    def is_found(self, headline: str, deciding: Iterable[Said], first: str = "") -> bool:
        """Whether the headline's check gives one of the right reasons, or another check behind the ``first`` one."""
        return any(
            said.check == check and headline in (check, first) and re.search(pattern, said.text)
            for said in deciding
            for check, pattern in self.reasons
        )


NOT_THE_FILES = r"parameters of rank \d+ are not the file's: .*"
NOT_AS_TRAINED = r"weights and optimizer state equal the fault-free run's|every loss equals the fault-free run's"

BUGS = (
    Bug(
        "nothing-loaded",
        "The resumed job counts on from the right step and has fresh weights.",
        (
            ("resume", NOT_THE_FILES + r"\bweight"),
            ("loss", NOT_AS_TRAINED),
        ),
    ),
    Bug(
        "moments-lost",
        "The optimizer's state is not loaded.",
        (("resume", NOT_THE_FILES + r"(?:moment|accum|mean_square|adam_)"),),
    ),
    Bug(
        "weights-only",
        "A checkpoint holds the weights and no optimizer state.",
        (("checkpoint", r"file.* lacks optimizer state"),),
    ),
    Bug(
        "batch-skipped",
        "The data of the resumed job is shifted by one batch.",
        (("resume", r"trained another batch at step \d+: .* so a batch was skipped|which the baseline never trained"),),
    ),
    Bug(
        "schedule-restarted",
        "The resumed job warms up again: its learning rate begins at half of what it was, or at a third.",
        (
            ("resume", NOT_THE_FILES + r"learning_rate"),
            ("loss", NOT_AS_TRAINED),
        ),
    ),
    Bug(
        "older-checkpoint",
        "The resumed job loads the checkpoint before the newest, and counts on as from the newest.",
        (
            ("resume", r"holds the weights of step \d+, its counter says \d+"),
            ("resume", r"step \d+ was saved, so the next is step \d+"),
        ),
    ),
    Bug(
        "parameter-lost",
        "A bias is not restored.",
        (("resume", r"[12] of \d+ parameters of rank \d+ are not the file's: .*bias"),),
    ),
    Bug(
        "rounded-save",
        "The save rounds the weights through float16.",
        (("checkpoint", r"parameters in rank \d+'s file of step \d+ differ: .*weight"),),
    ),
)

BY_ID = {bug.id: bug for bug in BUGS}

SOUND = "sound"
"""The job as it is, which has to pass."""
