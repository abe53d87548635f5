"""Every reader under bad input: a result, or the error that it documents, in bounded time and memory.

The everyday set is small and always the same. The long one has 100,000 inputs a target with fresh numbers;
``python -m tests.fuzz.drive`` does the same and can be interrupted. With ``python -m tests.fuzz.guided`` coverage
chooses the inputs.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.fuzz.drive import TARGETS, fuzz, load
from tests.fuzz.target import timed

pytestmark = pytest.mark.processes

EVERYDAY = 200
"""Inputs of a target in the everyday set."""

NIGHTLY = int(os.environ.get("CHAOS_FUZZ_INPUTS", "100000"))
"""Inputs of a target in the nightly set."""

SHARES = {"run_directory": 0.1, "result_file": 0.5}
"""Shares of these numbers, for targets that take longer for an input than the others."""


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_read(name: str, tmp_path: Path) -> None:
    target = load(name)
    corpus = target.corpus()
    assert corpus
    for content in corpus:
        with timed():
            target.check(content, tmp_path)


@pytest.mark.parametrize("name", TARGETS)
def test_bad_input_is_refused_in_words(name: str) -> None:
    inputs = int(EVERYDAY * SHARES.get(name, 1))
    assert fuzz(name, inputs, derandomize=True) >= inputs


@pytest.mark.nightly
@pytest.mark.parametrize("name", TARGETS)
def test_a_great_deal_of_bad_input_is_refused_in_words(name: str) -> None:
    inputs = int(NIGHTLY * SHARES.get(name, 1))
    assert fuzz(name, inputs, derandomize=False) >= inputs
