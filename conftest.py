"""Shared by all tests. The scenarios are collected by the installed plugin (chaos/pytest_plugin.py), not from here."""

pytest_plugins = ["pytester"]
