"""Shared by all tests. The scenarios are collected by the installed plugin (chaos/pytest_plugin/), not from here."""

import signal
import sys

import pytest

pytest_plugins = ["pytester"]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background of a shell. What tests start inherits it, and could not be interrupted then.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish() -> None:
    """Let pytest remove directories of 2,200 levels, which a killed test has left (tests/kit/deep_directory.py).

    It removes what earlier sessions have left level by level, and would end with a RecursionError.
    """
    sys.setrecursionlimit(20_000)
