"""The hooks of a scenario: commands before a run, after it, and for its verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from chaos.history.event import Event
from chaos.own.allowed import Allowed, in_words, program_of
from chaos.own.program import Ended, OwnPlace, run_program
from chaos.scenario.models.own import Hook

BEGIN, END = "hook.begin", "hook.end"


Record = Callable[..., Event]
"""Records an event of the history."""


class HookFailed(RuntimeError):
    """A command before the run did not come to a good end, so the job is not started."""


def run_hooks(
    stage: str,
    hooks: Sequence[Hook],
    place: OwnPlace,
    allowance: Allowed,
    record: Record,
    note: Callable[[str], None],
) -> None:
    """Run the commands of a stage in their order, and record the end of each.

    Before a run the first that fails raises HookFailed. Afterwards a failure is recorded and shown, and the others
    follow.
    """
    for number, hook in enumerate(hooks, start=1):
        words = in_words(hook.command)
        record(BEGIN, stage=stage, number=number, command=list(hook.command), limit=hook.limit)
        ended = _run(stage, number, hook, place, allowance)
        record(
            END,
            stage=stage,
            number=number,
            status=ended.status,
            timed_out=ended.timed_out,
            seconds=round(ended.seconds, 3),
            left=ended.left,
            output=ended.output,
        )
        if not ended.ok:
            failed = f"hook {stage} {number}, {words}, {ended.how}"
            if stage == "before":
                raise HookFailed(f"{failed}; its output is in the history")
            note(failed)


def _run(stage: str, number: int, hook: Hook, place: OwnPlace, allowance: Allowed) -> Ended:
    program = program_of(hook.command, place.directory)
    if not allowance.hook(hook) or program is None:
        return Ended(None, False, 0.0, "it is not allowed here" if program else "there is no such program")
    named = replace(place, environment={**place.environment, "CHAOS_HOOK": stage})
    return run_program(named, f"hook-{stage}-{number}", [program, *hook.command[1:]], hook.limit)
