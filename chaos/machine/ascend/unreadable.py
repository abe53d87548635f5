"""Output of a tool that differs from its documents."""

from __future__ import annotations

from chaos.machine.linux.commands import quoted


class UnreadableOutput(ValueError):
    """A tool's output differs from its documents. The text names the command and quotes the output."""

    def __init__(self, command: str, what: str, text: str) -> None:
        super().__init__(f"{command}: {what}: {quoted(text.strip())}; nothing is guessed from it")


def number(text: str, command: str) -> int:
    """Return a number that counts or names something, in ASCII digits. Raises UnreadableOutput."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise UnreadableOutput(command, "a number was expected", text)
    return int(text)
