"""Of cells that show one promise with other values some run every day, and those that are named here every night."""

import pytest

NIGHTLY = {
    "arf": ["phase=step.end"],
    "ecc": ["phase=step.end"],
    "hcce": ["ranks=[0,1,2,3]"],
    "kill-during-save": ["phase=checkpoint.end"],
    "mindformers-callbacks": ["loading=path"],
    "mindformers-kill-resume": ["config=llama.yaml", "config=qwen3.yaml"],
    "partition": ["direction=in"],
    "plain-kill-phases": ["phase=optimizer.update"],
    "port-blocked": ["port=controller,direction=in", "port=communicator,direction=both"],
    "tsp": ['protection=["TTP","TSP"]'],
    "uce": ["phase=forward", "phase=step.end"],
}


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cells of the night."""
    night = {f"{scenario}[{cell}]" for scenario, cells in NIGHTLY.items() for cell in cells}
    for item in items:
        if item.name in night:
            item.add_marker("nightly")
