"""Reader of MindSpeed-LLM's lines about its fault tolerance: saves at the end of life, repair, rollback, groups.

These are messages of Python's ``logging``, printed as the job has set it up: alone, or behind ``INFO:module:``. The
rank is in the message. Facts: the source of MindSpeed-LLM c77308a (2026-08); no such log has been recorded here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.log_reader import LogReader
from chaos.observe.logs.patterns import find_event, known

_HEAD = re.compile(r"(?:[A-Z]{4,8}:mindspeed_llm[\w.]{0,200}:)?")
_RANK = r"rank ?:? ?(?P<rank>\d{1,9})"
_STEP = r"(?P<step>\d{1,18})"
_SECONDS = r"(?P<seconds>\d{1,9}(?:\.\d{1,9})?)s"
_TABLE = (
    known(
        "tft.save_begin",
        "is saving checkpoint at",
        rf"^{_RANK} is saving checkpoint at iteration {{1,12}}{_STEP} to (?P<path_text>\S.{{0,4000}}) "
        r"in (?P<format>\w{1,40}) format$",
    ),
    known(
        "tft.save_end",
        "save disk: ",
        rf"^{_RANK} successfully saved checkpoint at iteration {{1,12}}{_STEP} to (?P<path_text>\S.{{0,4000}}), "
        r"save disk: (?P<on_disk_text>True|False)$",
    ),
    known("tft.renamed", "rename success", rf"^{_RANK} rename success$"),
    known(
        "tft.memory_checked",
        "check uce memory result",
        rf"^{_RANK} check uce memory result:? (?P<result_text>\S{{1,40}})$",
    ),
    known(
        "tft.cleaned",
        "[clean] ",
        rf"^\[clean\] {_RANK}, type:(?P<repair_text>[\w-]{{1,40}}), cost:{_SECONDS}, ret:(?P<ret>-?\d{{1,9}})",
    ),
    known(
        "tft.repair_begin",
        "repair type",
        rf"^(?:\[repair\]|repair) {_RANK}, repair type:? ?(?P<repair_text>[\w.-]{{1,60}}), ?src ranks:? ?"
        r"(?P<source>\[[\d, ]{0,4000}\]), (?:dst|dest) ranks:? ?(?P<target>\[[\d, ]{0,4000}\])"
        rf"(?:.{{0,16000}}\bstep:? ?{_STEP})?",
    ),
    known(
        "tft.repair_end",
        "repair total time consumed",
        rf"^(?:\[repair\]|repair) {_RANK} repair total time consumed: ?{_SECONDS}",
    ),
    known(
        "tft.copied",
        " total time consumed",
        rf"^\[repair\] {_RANK} (?P<what>send|recv) total time consumed:{_SECONDS}",
    ),
    known(
        "tft.memory_copy",
        "checkpoint to memory",
        rf"^{_RANK} successfully (?P<what>saved|load) checkpoint to memory",
    ),
    known(
        "tft.rollback_end",
        "[rollback] ",
        rf"^\[rollback\] {_RANK} rollback (?:total time consumed:{_SECONDS}|success)",
    ),
    known(
        "tft.rolled_back",
        "gather and rollback",
        rf"^{_RANK} successfully gather and rollback at iteration {_STEP}$",
    ),
    known(
        "tft.log_repaired",
        "repair training log",
        rf"^{_RANK} repair training log at iteration: {_STEP}$",
    ),
    known(
        "tft.rebuild_begin",
        "rebuild all process group",
        rf"^\d\.\d{{1,2}} {_RANK} start rebuild all process group",
    ),
    known(
        "tft.rebuild_step",
        " done",
        rf"^\d\.\d{{1,2}} {_RANK} (?P<what_text>(?:rebuild|init|destroy)[\w ]{{1,100}}) done$",
    ),
    known(
        "tft.rebuild_end",
        "[rebuild] ",
        rf"^\[rebuild\] {_RANK}, rebuild total time consumed:{_SECONDS}",
    ),
    known(
        "tft.scale",
        " strategy params: ",
        r"^scale[- ](?P<what>in|out) strategy params: (?P<parameters_text>.{0,4000})",
    ),
    known("tft.resized", "new DP size", rf"^{_RANK} new DP size:(?P<data_parallel>\d{{1,9}})"),
    known("tft.failed", "checkpoint name error", rf"^{_RANK} (?P<what_text>get checkpoint name error.{{0,400}})"),
    known("tft.failed", "failed to load ckpt", rf"^\[repair\] {_RANK} (?P<what_text>failed to load ckpt.{{0,400}})"),
    known(
        "tft.failed",
        " is abnormal, exiting",
        rf"^{_RANK} check uce memory (?P<what_text>result \S{{1,40}} is abnormal), exiting",
    ),
)


class MindSpeedLogReader(LogReader):
    """Lines of MindSpeed-LLM's fault tolerance: kinds ``tft.*``. They have no time."""

    name = "mindspeed"

    def recognises(self, first_lines: Sequence[str]) -> bool:
        """Return whether such a line is among them."""
        return any(self.read(line) is not None for line in first_lines)

    def read(self, line: str) -> LogEvent | None:
        """Return the event of a line, None if its form is unknown."""
        head = _HEAD.match(line)
        assert head is not None  # it may be empty
        return find_event(_TABLE, line[head.end() :], None, None)
