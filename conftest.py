"""Shared by all tests. The scenarios are collected by the installed plugin (chaos/pytest_plugin.py), not from here."""

import signal

pytest_plugins = ["pytester"]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background of a shell. What tests start inherits it, and could not be interrupted then.
    signal.signal(signal.SIGINT, signal.default_int_handler)
