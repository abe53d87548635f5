"""The proof that the kernel refuses a rank the files of its save."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.evidence.doubt import Doubt
from chaos.evidence.proof import Case, Proof


def refused(*errors: str, place: str = "mount", words: str = "the kernel's refusal of a file there") -> Proof:
    """Return the proof of a fault of the storage.

    Args:
        errors: names of the errors, such as ENOSPC, with one of which the kernel must have refused a file.
        place: the field of the evidence with the place: the rank's mount, or its directory.
        words: complete "proven by …" in the report.
    """

    def doubts(case: Case) -> Iterator[Doubt]:
        rank, error = case.evidence.get("rank"), case.evidence.get("refused")
        if error not in errors:
            doubt = f"where rank {rank} saves the kernel refused a file with {error}, not with {' or '.join(errors)}"
            yield doubt, (case.landing.source,)
        if not case.evidence.get(place):
            what = (
                f"what rank {rank} sees mounted"
                if place == "mount"
                else f"what has become of the {place} of rank {rank}"
            )
            yield f"{what} is not in the evidence", (case.landing.source,)

    return Proof(words, ("refused", place), doubts)
