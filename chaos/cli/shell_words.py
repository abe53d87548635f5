"""Completion in the shells for which the script of click is not enough.

Bash splits words with an equals sign, such as ``phase=forward``, and click does not: bash has ``=`` among its word
breaks. A line ``--cell phase=f`` comes as ``--cell``, ``phase``, ``=``, ``f``, and only the ``f`` is replaced by what
is offered.

Zsh loads the script of click from ``fpath`` at the first completion. From then on it takes the whole script for the
function that it defines, and the second completion of a shell is spent on a registration.
"""

from __future__ import annotations

import shlex
from typing import Any, ClassVar

from click.shell_completion import BashComplete, CompletionItem, ZshComplete, add_completion_class

_WITHOUT_BLANK = """\
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
    return 0
"""
"""Bash writes a blank behind a word that is complete; behind ``phase=`` a value follows."""


class BashWords(BashComplete):
    """Completion for bash: joins what it has split, offers the part that it replaces, and quotes it."""

    source_template: ClassVar[str] = BashComplete.source_template.replace("    return 0\n", _WITHOUT_BLANK)
    _stays = ""
    """The part of the incomplete value that bash keeps."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the incomplete one, and it, each joined where bash has split it."""
        before, incomplete = super().get_completion_args()
        words: list[str] = []
        for word in [*before, incomplete] if incomplete else before:
            if words and (word.startswith("=") or words[-1].endswith("=")):
                words[-1] += word
            else:
                words.append(word)
        if not incomplete:
            return words, ""
        last = words.pop()
        stays = last if incomplete == "=" else last.removesuffix(incomplete)
        option, equals, value = last.partition("=") if last.startswith("-") else ("", "", last)
        self._stays = stays.removeprefix(f"{option}{equals}")
        return ([*words, option], value) if equals else (words, last)

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """Return the answer for the script: the part that bash puts in, quoted for a shell."""
        if item.type in ("dir", "file"):  # completed by bash itself
            return super().format_completion(item)
        rest = item.value.removeprefix(self._stays)
        return f"{item.type},{shlex.quote(rest) if rest else rest}"


_CALL = '    %(complete_func)s "$@"\n'
_REGISTERED = f"    compdef %(complete_func)s %(prog_name)s\n{_CALL}"

_DESCRIBED = "completions_with_descriptions -U\n"
_DECIDE = "    if [ -n "
_BEHIND = """\
    local -a behind
    [[ "${completions[1]}${completions_with_descriptions[1]%%%%:*}" == *= ]] && behind=(-S '')

"""


class ZshWords(ZshComplete):
    """Completion for zsh."""

    source_template: ClassVar[str] = (
        ZshComplete.source_template.replace(_CALL, _REGISTERED)
        .replace(_DECIDE, _BEHIND + _DECIDE, 1)
        .replace(_DESCRIBED, _DESCRIBED[:-1] + ' "${behind[@]}"\n')
        .replace("compadd -U -V", 'compadd "${behind[@]}" -U -V')
    )


def complete_as_shells_need() -> None:
    """Let bash be answered by :class:`BashWords`, and zsh by :class:`ZshWords`."""
    add_completion_class(BashWords)
    add_completion_class(ZshWords)
