"""The command layer: no shell, the same user, bounded time and output, and errors that quote the tool."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import cast

import pytest

from chaos.machine.linux.commands import CommandError, Done, SystemCommands, _end, find_tool
from chaos.machine.linux.procfs import all_pids, command_line


@pytest.fixture
def tool(tmp_path: Path) -> Path:
    return tmp_path / "tool"


def commands(tool: Path, script: str, seconds: float = 60.0) -> SystemCommands:
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    return SystemCommands(seconds, lambda name: tool if name == "tool" else None)


def test_words_are_handed_over_as_they_are(tool: Path) -> None:
    done = commands(tool, 'printf "%s\\n" "$@"')("tool", "a b", "$HOME", "; touch x", "*")
    assert done.checked().splitlines() == ["a b", "$HOME", "; touch x", "*"]


def test_of_the_environment_only_what_the_tool_needs_is_handed_over(
    tool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAOS_AGENT", "secret")
    assert "secret" not in commands(tool, "env")("tool").checked()


def test_a_tool_that_starts_a_system_tool_finds_it_where_the_path_has_none(
    tool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert commands(tool, 'echo "$PATH"')("tool").checked().strip() == "/usr/bin:/bin:/usr/sbin:/sbin"


def test_nobody_waits_for_an_answer_that_is_not_given(tool: Path) -> None:
    run = commands(tool, 'read x; echo "got <$x>"')
    assert "got <>" in run("tool").output
    assert "got <y>" in run("tool", answer="y\n").output


def test_a_tool_that_fails_is_quoted(tool: Path) -> None:
    done = commands(tool, "echo dcmi module initialize failed >&2; exit 8")("tool", "info")
    with pytest.raises(CommandError, match=r"tool info ended with 8 and said 'dcmi module initialize failed'"):
        done.checked()


def test_a_tool_that_takes_too_long_is_ended_with_its_time_told(tool: Path) -> None:
    began = time.monotonic()
    with pytest.raises(CommandError, match=r"took more than 0\.2 s"):
        commands(tool, "exec sleep 600", seconds=0.2)("tool")
    assert time.monotonic() - began < 300


def test_a_tool_that_says_too_much_is_ended(tool: Path) -> None:
    with pytest.raises(CommandError, match="printed more than"):
        commands(tool, "exec cat /dev/zero")("tool")


def test_a_tool_that_would_run_as_another_user_is_not_run(tool: Path) -> None:
    run = commands(tool, "touch ran")
    tool.chmod(0o4755)
    with pytest.raises(CommandError, match="as another user"):
        run("tool")


def test_a_tool_that_is_not_there_or_not_for_this_machine_is_named(tool: Path) -> None:
    with pytest.raises(CommandError, match="there is no other on this machine"):
        commands(tool, "true")("other")
    run = commands(tool, "true")
    tool.write_bytes(b"\x7fELF")
    with pytest.raises(CommandError, match="cannot be run"):
        run("tool")


def test_a_tool_is_found_where_the_vendor_puts_it(tool: Path) -> None:
    commands(tool, "true")
    assert find_tool("hccn_tool", lambda name: None, {"hccn_tool": (str(tool),)}) == tool
    assert find_tool("hccn_tool", lambda name: None, {"hccn_tool": (str(tool.parent / "none"),)}) is None
    assert find_tool("npu-smi", lambda name: str(tool), {}) == tool


def test_what_was_run_is_told_in_words() -> None:
    assert str(Done(("hccn_tool", "-i", "0"), 0, "")) == "hccn_tool -i 0"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 gives a child no group of its own")
def test_ctrl_c_reaches_the_harness_and_not_the_tool(tool: Path) -> None:
    group, session = commands(tool, "cut -d' ' -f5,6 /proc/self/stat")("tool").checked().split()
    assert int(group) != os.getpgrp()
    assert int(session) == os.getsid(0)


def test_it_leaves_no_process(tool: Path) -> None:
    seconds = str(4_000_000_000 + os.getpid())  # nobody else sleeps that long
    with pytest.raises(CommandError):
        commands(tool, f"exec sleep {seconds}", seconds=0.2)("tool")
    assert [pid for pid in all_pids() if seconds in command_line(pid)] == []


def test_a_tool_that_the_kernel_does_not_let_end_is_told_and_left() -> None:
    class Hanging:
        pid = 4711
        stdin = stdout = stderr = None

        def kill(self) -> None:
            pass

        def wait(self, seconds: float) -> None:
            raise subprocess.TimeoutExpired("npu-smi", seconds)

    with pytest.raises(
        CommandError, match="npu-smi info cannot be ended: process 4711 hangs in the kernel and is left"
    ):
        _end(cast("subprocess.Popen[bytes]", Hanging()), "npu-smi info")
