"""Of scenarios that show one promise some run every day, and the cells that are named here every night."""

import pytest

NIGHTLY = {
    "arf": ["phase=step.end"],
    "ecc": ["phase=step.end"],
    "kill-during-save": ["phase=checkpoint.end"],
    "mindformers-callbacks": ["loading=path"],
    "mindformers-kill-resume": ["config=llama.yaml", "config=qwen3.yaml"],
    "partition": ["direction=in", "direction=both"],
    "plain-kill-phases": ["phase=optimizer.update"],
    "plain-nonfinite-loss": ["value=inf"],
    "port-blocked": ["port=controller,direction=in", "port=communicator,direction=both"],
    "uce": ["phase=forward", "phase=optimizer.update", "phase=step.end"],
}
"""Cells by scenario. Other cells of each run every day."""

SHOWN_BY = {
    "hcce": "plain-hcce",
    "rsc": "plain-rsc",
    "tre": "plain-tre",
    "tsp": "plain-tsp",
}
"""What plain ranks show every day in seconds, and a job of MindSpore every night in a minute."""

RUN_BY_TESTS = {
    "kill-rank": "tests/rehearsal/test_kill_rank.py",
    "plain-kill-rank": "tests/rehearsal/test_plain.py",
}
"""Scenarios that tests run every day, as a user does, and look at more closely."""


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cells of the night."""
    night = {f"{scenario}[{cell}]" for scenario, cells in NIGHTLY.items() for cell in cells}
    night |= {*SHOWN_BY, *RUN_BY_TESTS}
    for item in items:
        if item.name in night or item.name.partition("[")[0] in night:
            item.add_marker("nightly")
