"""Lines of a run while its test goes on: all of them with ``-s``, else those that say what the run waits for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress

import pytest

from chaos.pytest_plugin.status_line import has_status_line

Speak = Callable[[str], None]


def live_lines(config: pytest.Config, test: str) -> Speak | None:
    """Return what takes each line of a run as it is printed, None where nothing shows them.

    A terminal with a status line shows a wait there. A worker of xdist writes to the error output that it shares with
    pytest.
    """
    if (worker := getattr(config, "workerinput", None)) is not None:
        return _waits_only(lambda line: _to_errors(config, f"[{worker['workerid']}] {test}: {line}"))
    if (reporter := config.pluginmanager.get_plugin("terminalreporter")) is None:
        return None

    def say(line: str) -> None:
        with suppress(OSError, ValueError), _capture_off(config):
            reporter.ensure_newline()
            reporter.write_line(line)

    if config.getoption("capture") == "no":
        return say
    return None if has_status_line(config) else _waits_only(lambda line: say(f"{test}: {line}"))


def _waits_only(say: Speak) -> Speak:
    from chaos.cli.progress import is_wait_for_cores

    def only(line: str) -> None:
        if is_wait_for_cores(line):
            say(line)

    return only


def _to_errors(config: pytest.Config, line: str) -> None:
    with suppress(OSError, ValueError), _capture_off(config):
        print(line, file=sys.stderr, flush=True)


def _capture_off(config: pytest.Config) -> AbstractContextManager[None]:
    """Let through what is written: while a test is made its output is captured, that to the terminal included."""
    capture = config.pluginmanager.get_plugin("capturemanager")
    if capture is None:
        return nullcontext()
    off: AbstractContextManager[None] = capture.global_and_fixture_disabled()
    return off
