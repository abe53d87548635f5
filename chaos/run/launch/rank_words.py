"""Statements about the ranks of a launch that does not come to its end; ranks with the same state share a statement."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from chaos.base.rank_sets import by_word, named, rank_set
from chaos.machine.job.protocol import Job
from chaos.run.launch.cause import last_error, newest_log

_MOST_WORDS = 3
"""Most different texts that are quoted; further texts are counted."""


@dataclass(frozen=True)
class RankWords:
    """Words about the ``size`` ranks of one launch, whose logs are in ``logs``."""

    size: int
    logs: Path

    def set(self, ranks: Iterable[int]) -> str:
        """Return these ranks in words, with the number of all."""
        return rank_set(ranks, self.size)

    def ended_early(self, exited: Mapping[int, str], first: int, seconds: float, why: str = "") -> str:
        """Say how ranks have ended before the first step: the first one, its time, and ``why`` or their last words."""
        statuses = by_word(exited).items()
        how = "; ".join(f"{self._count(ranks)} ended with {status}" for status, ranks in statuses)
        when = f"after {seconds:.1f} s, before every rank had begun its first step"
        which = f", the first was rank {first}" if len(exited) > 1 else ""
        last_words = why or self._last_words(exited.keys(), first)
        return f"{how} {when}{which}{last_words and f': {last_words}'}; see {self.place(exited)}"

    def whereabouts(self, absent: Iterable[int], refused: Mapping[int, str], job: Job) -> str:
        """Say what is known of ranks that have not joined: the reason of a refusal, a process, or nothing."""
        identities = {process.rank: process.identity for process in job.processes() if process.role == "rank"}
        words = {
            rank: str(job.state(identities[rank])) if rank in identities else ""
            for rank in absent
            if rank not in refused
        }
        sentences = [f"rank {rank} was refused: {refused[rank]}" for rank in absent if rank in refused]
        for state, ranks in by_word(words).items():
            if not state:
                sentences.append(f"{named(ranks)} {'has' if len(ranks) == 1 else 'have'} no process")
            elif len(ranks) == 1:
                sentences.append(
                    f"rank {ranks[0]}: process {identities[ranks[0]].pid} is {state}, its agent has not called"
                )
            else:
                sentences.append(f"{named(ranks)}: their processes are {state}, their agents have not called")
        return _few(sentences)

    def positions(self, ranks: Set[int], exited: Mapping[int, str], steps: Mapping[int, int]) -> str:
        """Return how far each of these ranks is, or how it ended."""
        words = {rank: exited.get(rank, f"step {steps.get(rank)}") for rank in ranks}
        return "; ".join(f"{named(alike)}: {word}" for word, alike in by_word(words).items())

    def place(self, ranks: Iterable[int]) -> Path:
        """Return where to look: the log of one rank, the directory of several."""
        first, *others = ranks
        return self.logs if others else self.logs / f"worker_{first}.log"

    def _last_words(self, ranks: Set[int], first: int) -> str:
        """Return the last words of these ranks, each text once, the first rank's before the others."""
        words: dict[str, tuple[str, list[int]]] = {}
        for rank in (first, *sorted(ranks - {first})):
            if (text := last_error(newest_log(self.logs, rank))) is not None:
                # Ranks that fail alike say the same, each with its own number in it.
                words.setdefault(re.sub(r"\brank \d+\b", "rank", text), (text, []))[1].append(rank)
        if not words:  # a launcher such as mpirun forwards what the ranks print, and writes no log for each
            return last_error(self.logs / "msrun.log") or ""
        return _few([text if by == [first] else f"{named(by)} said: {text}" for text, by in words.values()])

    def _count(self, ranks: list[int]) -> str:
        return f"rank {ranks[0]}" if len(ranks) == 1 else f"{len(ranks):,} of {self.size:,} ranks"


def _few(texts: list[str]) -> str:
    more = [f"and {len(texts) - _MOST_WORDS} others"] if len(texts) > _MOST_WORDS else []
    return "; ".join([*texts[:_MOST_WORDS], *more])
