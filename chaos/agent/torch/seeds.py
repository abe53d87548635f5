"""Seeds the generators of a rank when it starts, for a script that seeds none of them (``job.seed_at_start``).

Every process of every rank gets the same seed, also when the job is started again. A script that seeds a generator
itself does so later, and its own seed counts. A job kind names this module among its extensions.
"""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

from chaos.agent.start import Agent

SETTING = "seed_at_start"

_OF_NUMPY = 1 << 32
"""numpy takes smaller seeds only."""


def install(agent: Agent) -> None:
    """Seed Python's generator, and those of numpy and PyTorch right after their import."""
    seed = agent.configuration.settings.get(SETTING)
    if seed is None or agent.place.rank is None:
        return

    def seed_numpy(module: ModuleType) -> None:
        numpy: Any = module
        numpy.random.seed(seed % _OF_NUMPY)

    def seed_torch(module: ModuleType) -> None:
        torch: Any = module
        torch.manual_seed(seed)

    random.seed(seed)
    agent.imports.watch("numpy", seed_numpy)
    agent.imports.watch("torch", seed_torch)
