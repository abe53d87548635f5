"""What a line quotes is no fact: a record counts in the form and at the place in which its program prints it."""

from __future__ import annotations

from datetime import timezone
from pathlib import Path

import pytest

from chaos.observe.logs.patterns import find_event, is_quoted, known
from chaos.observe.logs.reader import built_in_readers, read_log

READERS = built_in_readers(timezone.utc)
TABLE = (known("a.resumed", "Resume training", r"Resume training after TREError from step (?P<step>\d+)"),)
SENTENCE = "Resume training after TREError from step 6."
ME = "[WARNING] ME(7:1,MainProcess):2026-11-21-01:30:06.042.000 [mindspore/a.py:9] "
MSRUN = "There's worker exits with exception, kill all other workers"


@pytest.mark.parametrize(
    ("message", "step"),
    [
        (SENTENCE, 6),
        (f"run: {SENTENCE}", 6),
        (f"it can't: {SENTENCE}", 6),
        (f"'{SENTENCE}'", None),
        (f'help: grep for "{SENTENCE}"', None),
        (f'help: grep for "uce: {SENTENCE}"', None),
        (f'the words "uce" and {SENTENCE}', 6),
        (f"`{SENTENCE}`", None),
    ],
)
def test_a_sentence_in_quotation_marks_is_quoted(message: str, step: int | None) -> None:
    event = find_event(TABLE, message, None, None)
    assert (event and event.step) == step


def test_the_first_character_of_a_message_is_never_quoted() -> None:
    assert not is_quoted("'a", 0)
    assert is_quoted("'a", 1)


@pytest.mark.parametrize("before", ["help: look for '", 'help: "', "see `"])
@pytest.mark.parametrize("prefix", ["", ME])
@pytest.mark.parametrize(
    "sentence", [SENTENCE, "UCEError occurred.", "Enter _tft_clean_callback", "Callback on exception is called", MSRUN]
)
def test_no_program_says_what_its_line_quotes(tmp_path: Path, prefix: str, before: str, sentence: str) -> None:
    path = tmp_path / "worker_0.log"
    path.write_text(f"{prefix}{before}{sentence}\n")
    assert list(read_log(path, READERS)) == []


@pytest.mark.parametrize(
    "line", [f"help: {MSRUN}", "see the page: All workers successfully exit", f"{ME}note: {MSRUN}"]
)
def test_what_msrun_says_begins_its_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "msrun.log"
    path.write_text(f"{line}\n")
    assert list(read_log(path, READERS)) == []


@pytest.mark.parametrize("line", [MSRUN, f"{ME}{MSRUN}", f"{ME}Run] {MSRUN}"])
def test_msruns_own_line_is_read_with_and_without_its_prefix(tmp_path: Path, line: str) -> None:
    path = tmp_path / "msrun.log"
    path.write_text(f"{line}\n")
    assert [event.kind for event in read_log(path, READERS)] == ["msrun.kill_workers"]


@pytest.mark.parametrize("line", ["help: nextState: STATE_OP_DUMP", 'say "nextState: STATE_OP_DUMP"'])
def test_a_message_alone_begins_its_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "excerpt.txt"
    path.write_text(f"{line}\n")
    assert list(read_log(path, READERS)) == []
