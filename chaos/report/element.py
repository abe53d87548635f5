"""The first element that differs, or why it is not known, for a statement about digests."""

from __future__ import annotations

from chaos.evidence.statement_data import StatementData

ONLY_DIGESTS = "not known: only digests were compared, and no two files hold both states"


def element_of(data: StatementData) -> str | None:
    """Return the first element that differs with both values, or that only digests are known; None for no digests."""
    if not data.is_of_digests:
        return None
    if data.element is None:
        return ONLY_DIGESTS
    index = "" if data.element == "[]" else data.element
    return f"{data.parameters[0]}{index}: {data.value_expected} expected, {data.value_seen} seen"
