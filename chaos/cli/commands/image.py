"""``chaos image``: make the image of nodes that borrows this host's Python."""

from __future__ import annotations

import click

from chaos.cli import codes
from chaos.cli.debug import debug_option
from chaos.cli.options import echo_json, json_option
from chaos.scenario.models.defaults import SKELETON


@click.command("image", short_help="Make the image that nodes are made of on the platform docker.")
@click.option("--name", default=SKELETON, show_default=True, metavar="NAME:TAG", help="Name of the image.")
@click.option("--engine", metavar="URL", help="The Docker engine. Default: what DOCKER_HOST says.")
@json_option
@debug_option
def command(name: str, engine: str | None, as_json: bool) -> int:
    """Make the image that nodes are made of on the platform docker.

    It holds empty directories only: /usr, this Python and what it imports from are bound in from this host, read-only,
    when a node is made. So no registry is needed, and the nodes have the very packages that are here. For an image with
    a Python of its own see the repository's Dockerfile and cluster.docker.image.

    \b
    Examples:
      chaos image
      chaos image --engine unix:///run/user/1000/docker.sock
    """
    from chaos.machine.job.protocol import PlatformError
    from chaos.platforms.docker.engine import connect
    from chaos.platforms.docker.image import make_skeleton

    try:
        made = make_skeleton(connect(engine), name)
    except PlatformError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        echo_json({"schema_version": 1, "name": name, "id": made})
    else:
        click.echo(f"{name} is {made}")
    return codes.PASS
