"""The page of a run is one file that asks for nothing, and text of a job stays text in it."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import sys
from fnmatch import fnmatch
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from chaos.report.html import document
from chaos.report.page import render
from tests.kit.pages import page_data

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPOSITORY = Path(__file__).parents[4]


class Markup(HTMLParser):
    """The attributes of all elements of a page, as a browser reads them."""

    def __init__(self) -> None:
        super().__init__()
        self.attributes: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(key, value or "") for key, value in attrs]


def element(page: str, opening: str) -> str:
    """Return what stands between an opening tag and the next closing tag."""
    begin = page.index(opening) + len(opening)
    return page[begin : page.index("</", begin)]


def drawn(page: str) -> dict[str, Any]:
    """Return the data that the scripts draw."""
    data: dict[str, Any] = json.loads(element(page, '<script type="application/json" id="data">'))
    return data


def test_the_content_policy_names_the_script_and_the_styles_of_the_page_and_nothing_else() -> None:
    page = render.render(page_data.passing())
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    text = policy[1].replace("&#39;", "'")
    for rule, opening in (("script-src", "<script>"), ("style-src", "<style>")):
        digest = base64.b64encode(hashlib.sha256(element(page, opening).encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}';" in text
    assert "default-src 'none'" in text and "unsafe" not in text and "http" not in text


@pytest.mark.parametrize("name", ["passing", "failing", "hostile"])
def test_a_page_names_no_other_file_and_styles_no_element_inline(name: str) -> None:
    markup = Markup()
    markup.feed(render.render(getattr(page_data, name)()))
    attributes = {key for key, _ in markup.attributes}
    assert not {key for key in attributes if key in ("src", "style") or key.startswith("on")}
    assert {value for key, value in markup.attributes if key == "href" and not value.startswith("#")} == {"data:,"}


def test_text_of_a_job_ends_no_element_and_begins_none() -> None:
    page, plain = render.render(page_data.hostile()), render.render(page_data.failing())
    for tag in ("<script", "</script", "<img", "<style"):
        assert page.count(tag) == plain.count(tag), tag
    assert page_data.HOSTILE in drawn(page)["excerpts"]["e1"]["lines"][0]


def test_line_separators_of_javascript_are_escaped_in_the_data() -> None:
    data = page_data.failing()
    data["excerpts"]["e1"]["lines"] = ["a\u2028b\u2029c"]
    page = render.render(data)
    assert "\u2028" not in page and drawn(page)["excerpts"]["e1"]["lines"] == ["a\u2028b\u2029c"]


def test_a_value_that_is_no_finite_number_stays_visible() -> None:
    data = page_data.passing()
    data["curves"]["run"]["loss"][:3] = [math.nan, math.inf, -math.inf]
    assert drawn(render.render(data))["curves"]["run"]["loss"][:4] == ["NaN", "Infinity", "-Infinity", 2.31 / 4]


def test_a_pass_without_a_reason_is_a_sentence() -> None:
    page = render.render(page_data.passing())
    assert f"all {len(page_data.PASSED)} statements hold" in page
    assert "<title>✓ pass · kill-rank-" in page


def test_the_cause_stands_open_and_before_its_consequences() -> None:
    page = render.render(page_data.failing())
    cards = re.findall(r'<details class="statement (\w+)"( open)?>', page)
    assert cards == [("fail", " open"), *[("fail", "")] * 6, ("unknown", "")]
    assert page.index("moments.layer1.bias of rank 0") < page.index("step 7: the loss")


def test_many_consequences_stand_behind_one_line() -> None:
    data = page_data.failing()
    data["statements"][1:1] = [data["statements"][1]] * 30
    assert "37 more statements failed or are unknown" in render.render(data)


@pytest.mark.parametrize(
    ("package", "own"),
    [
        (document, {*document.LIBRARY, *document.SCRIPTS, *document.STYLES}),
        (render, {*render.SCRIPTS, *render.STYLES}),
    ],
)
def test_every_asset_is_in_the_page_and_in_the_package(package: ModuleType, own: set[str]) -> None:
    here = Path(str(package.__file__)).parent
    assert {path.relative_to(here / "assets").as_posix() for path in (here / "assets").rglob("*.*")} == own
    listed = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    files = [path.relative_to(here) for path in here.rglob("*") if path.is_file()]
    data = [path for path in files if path.suffix not in (".py", ".pyc")]
    patterns = listed[package.__package__]
    assert [path for path in data if not any(fnmatch(path.as_posix(), pattern) for pattern in patterns)] == []


def test_the_plotting_library_keeps_its_licence() -> None:
    licence = document.HERE / "assets" / "uplot" / "LICENSE"
    assert "Copyright (c) 2022 Leon Sorokin" in licence.read_text()
    assert "leeoniya/uPlot" in render.render(page_data.passing())


def test_a_run_that_has_recorded_nothing_has_a_page() -> None:
    assert "no statement" in render.render(page_data.empty())
