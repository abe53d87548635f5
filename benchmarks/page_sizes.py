"""How large report.html is, how long it takes to make beside judging the same run, and how fast a browser shows it.

Run: ``nice python benchmarks/page_sizes.py [--ranks 1024 --steps 10000]``. Two runs are made under ``--directory`` and
deleted: an ordinary one of four ranks, and a large one as ``judging.py`` makes it (3.1 GB for the default). The browser
is Debian's chromium, driven by playwright: it opens the page of the large run, and that of large_page.py, in
which every rank has recorded its steps. Where there is none, its figures are left out and named.

Prints each figure with its limit and whether it holds; ends with 1 where one does not. Seconds are those of this
machine: the ratio to judging, in the same process, says more on a busy one. ``--no-limits`` ends with 0.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from big_run import BigRun

sys.path.insert(0, str(Path(__file__).parents[1]))

from chaos.checks.judge import judge
from chaos.report.analyze import result_of
from chaos.report.page.data import page_of
from chaos.report.page.render import render
from tests.kit.pages.browser import PROGRAMS, Visit
from tests.kit.pages.large_page import large
from tests.kit.runs.good_run import good_run

ORDINARY_MB, ORDINARY_SECONDS = 1.5, 0.5
LARGE_MB, LARGE_RATIO = 8.0, 1 / 3
PAINT_SECONDS, ZOOM_SECONDS = 2.0, 0.1

ZOOM = """() => new Promise((done) => {
  const root = document.querySelector(".timeline");
  root.focus();
  const began = performance.now();
  root.dispatchEvent(new KeyboardEvent("keydown", { key: "+", bubbles: true }));
  requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - began)));
})"""

T = TypeVar("T")


@dataclass(frozen=True)
class Figure:
    """What was measured, and the most that it may be."""

    name: str
    value: float
    limit: float
    unit: str

    @property
    def holds(self) -> bool:
        return self.value <= self.limit

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "does NOT hold"
        return f"{self.name}: {self.value:.3g} {self.unit}, limit {self.limit:.3g} {self.unit}: {verdict}"


def timed(act: Callable[[], T]) -> tuple[float, T]:
    """Return the seconds that a call took, and its outcome."""
    began = time.perf_counter()
    outcome = act()
    return time.perf_counter() - began, outcome


def page_of_run(run: Path, repeats: int) -> tuple[str, float, float]:
    """Judge a run and make its page; return the page, the seconds of making it and of judging."""
    judging, (judgement, result) = timed(lambda: (own := judge(run), result_of(run, own)))
    made = [timed(lambda: render(asdict(page_of(run, judgement, result)))) for _ in range(repeats)]
    return made[0][1], median(seconds for seconds, _ in made), judging


def ordinary(directory: Path) -> Iterator[Figure]:
    """Yield the figures of a run of four ranks."""
    page, seconds, judging = page_of_run(good_run().write(directory / "run"), repeats=5)
    yield Figure("ordinary run, size", len(page.encode()) / 1e6, ORDINARY_MB, "MB")
    yield Figure(f"ordinary run, made ({seconds / judging:.2f} of judging)", seconds, ORDINARY_SECONDS, "s")


def large_run(big: BigRun, file: Path) -> Iterator[Figure]:
    """Yield the figures of a large run, and write its page to ``file``."""
    big.make()
    page, seconds, judging = page_of_run(big.directory, repeats=1)
    file.write_text(page, "utf-8")
    name = f"{big.ranks:,} ranks, {big.steps:,} steps"
    yield Figure(f"{name}, size", len(page.encode()) / 1e6, LARGE_MB, "MB")
    ratio = f"{name}, made in {seconds:.1f} s, judged in {judging:.1f} s: ratio"
    yield Figure(ratio, seconds / judging, LARGE_RATIO, "")


def shown(name: str, file: Path) -> Iterator[Figure]:
    """Yield how fast a browser shows a page and zooms its timeline."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, PROGRAMS)))
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page: Any = Visit(browser, file).page
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        zooms = [page.evaluate(ZOOM) for _ in range(7)]
        browser.close()
    yield Figure(f"{name}, first paint", paint / 1000, PAINT_SECONDS, "s")
    yield Figure(f"{name}, zoom", median(zooms) / 1000, ZOOM_SECONDS, "s")


def figures(directory: Path, ranks: int, steps: int) -> Iterator[Figure]:
    """Yield all figures."""
    yield from ordinary(directory)
    recorded = directory / "recorded.html"
    recorded.write_text(render(large()), "utf-8")
    yield Figure("1,024 ranks with recorded steps, size", recorded.stat().st_size / 1e6, LARGE_MB, "MB")
    file = directory / "large.html"
    yield from large_run(BigRun(directory / "large", ranks, steps), file)
    if not any(map(shutil.which, PROGRAMS)):
        print(f"first paint and zoom are not measured: no browser is installed ({', '.join(PROGRAMS)})")
        return
    yield from shown("1,024 ranks with recorded steps", recorded)
    yield from shown(f"{ranks:,} ranks", file)


def main() -> int:
    """Measure, print, and say by the exit code whether every limit is kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--no-limits", action="store_true")
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="chaos-pages-", dir=options.directory))
    kept = True
    try:
        for figure in figures(directory, options.ranks, options.steps):
            print(figure, flush=True)
            kept = kept and figure.holds
    finally:
        shutil.rmtree(directory)
    return int(not kept and not options.no_limits)


if __name__ == "__main__":
    sys.exit(main())
