"""The report page of a run as HTML: one file without a request to anywhere.

The input is plain data, as :mod:`chaos.report.page.data` collects it. Whatever comes from a job is text: jinja2 escapes
it where the template sets it, and the page's scripts set it as text content. The content policy of the page lets its
own script and styles run, which are named by their digests, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

HERE = Path(__file__).parent

STYLES = ("uplot/uPlot.min.css", "report.css")

LIBRARY = ("uplot/uPlot.iife.min.js",)

SCRIPTS = (
    *(f"js/{name}.js" for name in ("dom", "theme", "tooltip", "canvas")),
    *(f"js/timeline/{name}.js" for name in ("window", "rows", "marks", "shares", "paint", "header", "hit")),
    *(f"js/timeline/{name}.js" for name in ("legend", "control", "events", "timeline")),
    *(f"js/{name}.js" for name in ("excerpts", "waterfall", "curve_lines", "curves", "checkpoints", "page")),
)
"""Our own part of the page's one script. All files share a scope, and the last one starts the page."""

DRAWN = ("timeline", "recoveries", "curves", "checkpoints", "excerpts")
"""What the scripts draw. The template sets all other data as text."""

SYMBOLS = {"pass": "✓", "fail": "✗", "unknown": "?"}
"""What stands beside the word of a verdict, so that nobody needs its colour."""

_ESCAPES = {sign: f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def render(data: dict[str, Any]) -> str:
    """Return the page of a run as HTML.

    ``data`` has the keys of ``PageData``, all times in seconds since the start of the run. A number that is not finite
    stays visible: it reaches the page as ``NaN``, ``Infinity`` or ``-Infinity``.
    """
    return _template().render(
        **data,
        symbols=SYMBOLS,
        script=_script(),
        style=_style(),
        policy=_policy(),
        drawn=_json({key: data[key] for key in DRAWN}),
    )


@cache
def _template() -> Template:
    loader = FileSystemLoader(HERE / "templates")
    settings = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return settings.get_template("report.html.j2")


@cache
def _script() -> Markup:
    """Return the one script of the page: the library, and our own files in a scope of their own."""
    return Markup(f'{_assets(LIBRARY)}\n(() => {{\n"use strict";\n{_assets(SCRIPTS)}\n}})();')


@cache
def _style() -> Markup:
    return Markup(_assets(STYLES))


def _assets(names: tuple[str, ...]) -> str:
    return "\n".join((HERE / "assets" / name).read_text(encoding="utf-8") for name in names)


@cache
def _policy() -> str:
    """Return the content policy: nothing but the one script and the one style sheet of the page."""
    script, style = _digest(_script()), _digest(_style())
    rules = ("default-src 'none'", f"script-src '{script}'", f"style-src '{style}'", "img-src data:")
    return "; ".join((*rules, "base-uri 'none'", "form-action 'none'"))


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _json(data: dict[str, Any]) -> Markup:
    """Return JSON that cannot end the element in which it stands."""
    try:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(_finite(data), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign, escape in _ESCAPES.items():
        text = text.replace(sign, escape)
    return Markup(text)


def _finite(value: Any) -> Any:
    """Return the value with words for the numbers that JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value
