"""A page as one HTML file without a request to anywhere.

Whatever comes from a job is text: jinja2 escapes it where a template sets it, and the scripts set it as text content.
The content policy of a page lets its own script and styles run, which are named by their digests, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

HERE = Path(__file__).parent

LIBRARY = ("uplot/uPlot.iife.min.js",)

STYLES = ("uplot/uPlot.min.css", "base.css")

SCRIPTS = tuple(f"js/{name}.js" for name in ("dom", "theme", "tooltip", "canvas", "plot"))
"""Scripts of all pages. They share a scope with a page's own, which come after them."""

SYMBOLS = {"pass": "✓", "fail": "✗", "unknown": "?"}
"""The symbol beside the word of a verdict, so that nobody needs its colour."""

_ESCAPES = {sign: f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


@dataclass(frozen=True)
class Document:
    """A kind of page with its own ``template``, ``styles`` and ``scripts``; the last script starts the page.

    ``allowed`` are rules of the content policy beside those of every page. The files lie below ``templates`` and
    ``assets`` of the directory ``here``.
    """

    here: Path
    template: str
    styles: tuple[str, ...]
    scripts: tuple[str, ...]
    allowed: tuple[str, ...] = ()

    def render(self, drawn: dict[str, Any], **texts: Any) -> str:
        """Return a page as HTML. The scripts draw ``drawn``, the template sets ``texts``.

        A number that is not finite stays visible: it reaches the scripts as ``NaN``, ``Infinity`` or ``-Infinity``.
        """
        return self._template.render(
            **texts,
            symbols=SYMBOLS,
            script=self._script,
            style=self._style,
            policy=self.policy,
            drawn=_json(drawn),
        )

    @cached_property
    def _template(self) -> Template:
        loader = FileSystemLoader([self.here / "templates", HERE / "templates"])
        settings = Environment(
            loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        return settings.get_template(self.template)

    @cached_property
    def _script(self) -> Markup:
        """Return the one script of the page: the library, and our own files in a scope of their own."""
        script = f"{_assets(HERE, SCRIPTS)}\n{_assets(self.here, self.scripts)}"
        return Markup(f'{_assets(HERE, LIBRARY)}\n(() => {{\n"use strict";\n{script}\n}})();')

    @cached_property
    def _style(self) -> Markup:
        return Markup(f"{_assets(HERE, STYLES)}\n{_assets(self.here, self.styles)}")

    @cached_property
    def policy(self) -> str:
        """Return the content policy: nothing but the one script and the one style sheet of the page."""
        script, style = _digest(self._script), _digest(self._style)
        rules = ("default-src 'none'", f"script-src '{script}'", f"style-src '{style}'", "img-src data:")
        return "; ".join((*rules, *self.allowed, "base-uri 'none'", "form-action 'none'"))


def _assets(directory: Path, names: tuple[str, ...]) -> str:
    return "\n".join((directory / "assets" / name).read_text(encoding="utf-8") for name in names)


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
