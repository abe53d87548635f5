"""The keys of a scenario about the containers of its job (``cluster.docker``)."""

from __future__ import annotations

from pydantic import Field

from chaos.scenario.models.defaults import SKELETON
from chaos.scenario.models.terms import Model


class Docker(Model):
    """The image of the containers, and the engine that makes them."""

    engine: str | None = Field(
        None, min_length=1, description="Address of the Docker engine. Default: the value of DOCKER_HOST."
    )
    image: str = Field(
        SKELETON, min_length=1, description="Image of the nodes. Default: an image that borrows this Python."
    )
    python: str | None = Field(None, min_length=1, description="Python in the image. Default: the path of chaos's own.")
    readable: tuple[str, ...] = Field(
        (), strict=False, description="Further directories of this host that the job reads."
    )
    subnets: tuple[str, ...] = Field(
        (),
        strict=False,
        description="Subnets such as 10.99.1.0/24; the run takes the first free one. Default: the engine's.",
    )
