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

EVERYDAY = {"run_directory": 20, "result_file": 100}
"""Inputs in the everyday set, where an input takes longer than with the others."""

NIGHTLY = int(os.environ.get("CHAOS_FUZZ_INPUTS", "100000"))


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
    inputs = EVERYDAY.get(name, 200)
    assert fuzz(name, inputs, derandomize=True) >= inputs


@pytest.mark.nightly
@pytest.mark.parametrize("name", TARGETS)
def test_a_great_deal_of_bad_input_is_refused_in_words(name: str) -> None:
    assert fuzz(name, NIGHTLY, derandomize=False) >= NIGHTLY
