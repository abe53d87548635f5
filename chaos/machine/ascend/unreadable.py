"""Output of a tool that is not what its documents show."""

from __future__ import annotations

from chaos.machine.linux.commands import quoted


class UnreadableOutput(ValueError):
    """A tool printed what no document shows. The text names the command and quotes what it printed."""

    def __init__(self, command: str, what: str, text: str) -> None:
        super().__init__(f"{command}: {what}: {quoted(text.strip())}; nothing is guessed from it")


def number(text: str, command: str) -> int:
    """Return a number that counts or names something, in the digits of ASCII. Raises UnreadableOutput."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise UnreadableOutput(command, "a number was expected", text)
    return int(text)
