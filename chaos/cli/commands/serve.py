"""``chaos serve``: index, runs and the runs in progress in a browser."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from chaos.cli import codes
from chaos.cli.debug import debug_option
from chaos.cli.interrupt import ended_like_ctrl_c
from chaos.cli.options import reports_option


@click.command("serve", short_help="Show runs, also those in progress, in a browser.")
@reports_option
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port; by default a free one.")
@click.option("--host", metavar="NAME", help="Serve on another address than 127.0.0.1: by name, never by default.")
@click.option("--open", "open_browser", is_flag=True, help="Show the page in the browser.")
@debug_option
def command(reports: Path, port: int, host: str | None, open_browser: bool) -> int:
    """Serve the pages of all runs in the reports directory, until Ctrl-C.

    The line that is printed is the URL. It leads to the index of all runs, to the page of each, made of its files as
    they are now, to the times over nights, and to the live view: ranks, steps, phase, faults and loss of each run in
    progress.

    The server only reads. It listens on 127.0.0.1, and answers nobody who does not have the URL: it holds a token that
    is new each time. From another machine, forward the port through SSH:

    \b
      chaos serve --port 8765                       on the machine with the runs
      ssh -L 8765:127.0.0.1:8765 MACHINE            on yours; then open the URL

    --host NAME listens on another address, ::1 or that of a network. Whoever learns the URL there can read every run,
    and nothing is encrypted on the way.

    \b
    Examples:
      chaos serve --open
      chaos serve --reports nightly/reports --port 8765

    \b
    Exit codes: 64 the directory or the address cannot be used, 130 Ctrl-C.
    """
    from chaos.base.registry import registry
    from chaos.serve.address import AddressUnknown, address_of
    from chaos.serve.server import Server

    if not reports.is_dir():
        raise click.UsageError(f"--reports {reports}: there is no such directory; give that of your runs")
    try:
        address = address_of(host)
        server = Server(reports, sorted(registry("faults").points), address, port)
    except (AddressUnknown, OSError) as error:
        place = f"--host {host}" if isinstance(error, AddressUnknown) or not port else f"--port {port}"
        raise click.UsageError(f"{place}: {getattr(error, 'strerror', None) or error}") from error
    with server, ended_like_ctrl_c(), ExitStack() as stack:
        if not address.loopback:
            click.echo(
                f"chaos: warning: {address.ip} is no loopback address: whoever learns the URL can read all runs over "
                "the network, and nothing is encrypted",
                err=True,
            )
        click.echo(server.url)
        if open_browser:
            from chaos.serve.browser import shown

            if not stack.enter_context(shown(server.url)):
                click.echo("chaos: no browser was found here; open the URL by hand", err=True)
        server.serve_forever()
    return codes.PASS
