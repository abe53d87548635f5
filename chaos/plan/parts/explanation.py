"""The reasons for the plan's expectations, and the places where they are written."""

from __future__ import annotations

from dataclasses import dataclass, field

from chaos.plan.source import Source


@dataclass(frozen=True)
class Explanation:
    """The source of each expectation.

    ``reasons`` explains each derived expectation in a sentence. ``lines`` maps an expectation ("checkpoint.step",
    "mechanism", "repair", "recovery.detection", …) to the line of the scenario file that wrote it or, where the plan
    filled it in, to the line that it follows from. ``configured`` holds each value that the job's own files decide, by
    its key in a scenario or by its name, with its place.
    """

    reasons: tuple[str, ...] = ()
    lines: dict[str, int] = field(default_factory=dict)
    configured: dict[str, str] = field(default_factory=dict)


def configured_of(source: Source) -> dict[str, str]:
    """Return the values that the job's own files decide, each with its place."""
    return {name: str(origin) for name, origin in {**source.origins, **source.facts}.items()}
