"""Writing limits into a scenario file: the text changes where they stand, and comments stay.

The new text is read again: it must say the same as before but for these keys, or nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from chaos.base.refusal import Refused

MARK = "chaos calibrate: "
"""Begins each comment of a calibration; the next one removes them."""

KEYS = ("tolerance", "mean", "state", "false_alarm", "measured")
"""The keys of ``expect.loss`` that a calibration writes. A key without a value is removed."""

_INDENT = 2


@dataclass(frozen=True)
class _Change:
    """A piece of the text, from ``begin`` to ``end``, and what stands there instead."""

    begin: int
    end: int
    text: str


def with_limits(text: str, limits: Mapping[str, Any], comment: Sequence[str] = ()) -> str:
    """Return the scenario's text with ``limits`` in ``expect.loss``, and a comment above them.

    Raises Refused with the lines to write by hand where the text has a form that cannot be changed safely.
    """
    by_hand = "\n".join(["expect:", "  loss:", *(f"    {line}" for line in _block(limits, comment))])
    try:
        before = yaml.safe_load(text)
        after = _changed(_without_own_comments(text), limits, comment)
        if yaml.safe_load(after) == _expected(before, limits):
            return after
    except (yaml.YAMLError, _Unusual):
        pass
    raise Refused(f"the file has a form that cannot be changed safely; write into it:\n{by_hand}")


def _without_own_comments(text: str) -> str:
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.lstrip().startswith(f"# {MARK}"))


class _Unusual(Exception):
    """The file has another form than those that can be changed."""


def _expected(before: Any, limits: Mapping[str, Any]) -> Any:
    expect = before.get("expect") or {}
    loss = {name: value for name, value in (expect.get("loss") or {}).items() if name not in KEYS}
    return {**before, "expect": {**expect, "loss": {**loss, **limits}}}


def _changed(text: str, limits: Mapping[str, Any], comment: Sequence[str]) -> str:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode) or root.flow_style:
        raise _Unusual
    expect = _entry(root, "expect")
    if expect is None:
        end = "" if text.endswith("\n") or not text else "\n"
        lines = ["expect:", f"{' ' * _INDENT}loss:", *_indented(_block(limits, comment), 2 * _INDENT)]
        return text + end + "\n".join(lines) + "\n"
    key, value = expect
    if _is_empty(value):
        lines = [f"{' ' * _INDENT}loss:", *_indented(_block(limits, comment), 2 * _INDENT)]
        return _apply(text, [_below(text, key, lines)])
    if not isinstance(value, yaml.MappingNode):
        raise _Unusual
    loss = _entry(value, "loss")
    if value.flow_style:
        return _apply(text, [_in_flow(value, loss, limits)])
    indent = value.value[0][0].start_mark.column
    if loss is None:
        lines = [f"{' ' * indent}loss:", *_indented(_block(limits, comment), indent + _INDENT)]
        return _apply(text, [_below(text, key, lines)])
    return _apply(text, list(_in_loss(text, loss, indent, limits, comment)))


def _entry(mapping: yaml.MappingNode, name: str) -> tuple[yaml.Node, yaml.Node] | None:
    return next(((key, value) for key, value in mapping.value if key.value == name), None)


def _is_empty(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.value == "" and node.start_mark.index == node.end_mark.index


def _in_flow(expect: yaml.MappingNode, loss: tuple[yaml.Node, yaml.Node] | None, limits: Mapping[str, Any]) -> _Change:
    """Return the change of ``expect: {…}``, which keeps its form."""
    if loss is None:
        begin = expect.start_mark.index + 1
        return _Change(begin, begin, f"loss: {_flow(limits)}{', ' if expect.value else ''}")
    return _Change(loss[1].start_mark.index, loss[1].end_mark.index, _flow(limits))


def _in_loss(
    text: str, loss: tuple[yaml.Node, yaml.Node], indent: int, limits: Mapping[str, Any], comment: Sequence[str]
) -> Sequence[_Change]:
    key, value = loss
    if _is_empty(value) or (isinstance(value, yaml.MappingNode) and value.flow_style):
        old = text[value.start_mark.index : value.end_mark.index]
        if "#" in old or "\n" in old:
            raise _Unusual
        lines = _indented(_block(limits, comment), indent + _INDENT)
        return [_Change(value.start_mark.index, value.end_mark.index, ""), _below(text, key, lines)]
    if not isinstance(value, yaml.MappingNode):
        raise _Unusual
    inner = value.value[0][0].start_mark.column
    changes = [
        change for name, held in value.value if name.value in KEYS for change in _removed(text, name, held, inner)
    ]
    return [*changes, _below(text, key, _indented(_block(limits, comment), inner))]


def _removed(text: str, key: yaml.Node, value: yaml.Node, indent: int) -> Sequence[_Change]:
    """Return the removal of the lines that hold a key and its value. A comment at the end of a line stays."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    ends = {key.start_mark.line: text.index(":", key.end_mark.index) + 1}
    for node in _leaves(value):
        ends.update(dict.fromkeys(range(node.start_mark.line, node.end_mark.line), 0))
        ends[node.end_mark.line] = max(node.end_mark.index, ends.get(node.end_mark.line, 0))
    changes = []
    for number, end in ends.items():
        begin, after = starts[number], starts[number + 1]
        rest = text[end:after].strip() if end else ""
        comment = rest[rest.index("#") :] if "#" in rest else ""
        if rest and not rest.startswith(("#", ",", "}")) and not comment:
            raise _Unusual
        changes.append(_Change(begin, after, f"{' ' * indent}{comment}\n" if comment else ""))
    return changes


def _leaves(node: yaml.Node) -> Sequence[yaml.Node]:
    if isinstance(node, yaml.MappingNode) and not node.flow_style:
        return [leaf for pair in node.value for part in pair for leaf in _leaves(part)]
    if isinstance(node, yaml.SequenceNode) and not node.flow_style:
        return [leaf for part in node.value for leaf in _leaves(part)]
    return [node]


def _below(text: str, key: yaml.Node, lines: Sequence[str]) -> _Change:
    """Return the insertion of lines below the line of a key."""
    end = text.find("\n", key.start_mark.index)
    inserted = "\n".join(lines)
    return _Change(len(text), len(text), f"\n{inserted}\n") if end < 0 else _Change(end + 1, end + 1, f"{inserted}\n")


def _apply(text: str, changes: Sequence[_Change]) -> str:
    for change in sorted(changes, key=lambda each: (each.begin, each.end), reverse=True):
        text = text[: change.begin] + change.text + text[change.end :]
    return text


def _block(limits: Mapping[str, Any], comment: Sequence[str]) -> list[str]:
    lines = [f"# {line}" for line in comment]
    for name, value in limits.items():
        if isinstance(value, Mapping):
            lines.append(f"{name}:")
            lines += [f"{' ' * _INDENT}{_key(key)}: {_flow(each)}" for key, each in value.items()]
        else:
            lines.append(f"{name}: {_flow(value)}")
    return lines


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)}: {_flow(each)}" for key, each in value.items()) + "}"
    return _quoted(value) if isinstance(value, str) else _number(value)


def _key(key: str) -> str:
    return key if all(part.isidentifier() for part in key.split(".")) else _quoted(key)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _number(value: float) -> str:
    """Return a number that YAML 1.1 reads as one: it wants a point before an exponent."""
    text = repr(float(value))
    mantissa, exponent, power = text.partition("e")
    return f"{mantissa}.0e{power}" if exponent and "." not in mantissa else text


def _indented(lines: Sequence[str], columns: int) -> list[str]:
    return [f"{' ' * columns}{line}" for line in lines]
