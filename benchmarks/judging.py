"""How long judging a large run takes, beside `grep -cE` for the losses in the same logs, and how both grow.

Run: ``python benchmarks/judging.py [--ranks 1024 --steps 10000]``. Generates runs of a quarter, of half and of all of
the ranks under ``--directory``, one after the other, and deletes each. Measures ``grep`` and ``chaos analyze`` by
turns, with warm file caches. At full size it also changes the last digit of one loss of one rank, which must be found.
Ends with 1 when a limit is exceeded or the verdict is not the right one.

The ratios are of wall-clock times, those of processor time stand beside them: on a busy machine they tell more.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from big_run import GROUPS, BigRun

LOSSES = r"step:\[ *[0-9]+/ *[0-9]+\], loss"
RATIO = 5.0
"""``chaos analyze`` may take so many times as long as ``grep``."""

GROWTH = 1.25
"""The time for each byte may grow by this from the first size to the last."""

MEMORY_MB = 600.0


@dataclass(frozen=True)
class Took:
    """What a process took: seconds by the clock and of the processor, most memory in MB."""

    wall: float
    processor: float
    memory: float
    code: int
    output: bytes


def run(command: Sequence[str], environment: Mapping[str, str]) -> Took:
    """Run a process to its end. grep stops at the first match if its output is /dev/null, so there is a file."""
    with tempfile.TemporaryFile() as output:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        processor = usage.ru_utime + usage.ru_stime
        return Took(wall, processor, usage.ru_maxrss / 1024, process.returncode, output.read())


def grep(big: BigRun, locale: str | None) -> Took:
    """Count the losses in every log. ``locale`` is LC_ALL, None the user's own."""
    environment = os.environ if locale is None else os.environ | {"LC_ALL": locale}
    took = run(["grep", "-cE", LOSSES, *map(str, sorted(big.logs()))], environment)
    counted = sum(int(line.rpartition(b":")[2]) for line in took.output.splitlines())
    expected = big.ranks * (2 * big.steps + 1)
    if counted != expected:
        raise SystemExit(f"grep counts {counted} losses, there are {expected}")
    return took


def analyze(big: BigRun) -> tuple[Took, dict[str, Any]]:
    """Judge the run."""
    took = run([sys.executable, "-m", "chaos", "analyze", str(big.directory), "--json"], os.environ)
    return took, json.loads(took.output)


def failures(result: dict[str, Any]) -> list[str]:
    """What the checks found to be wrong."""
    return [f"{check['name']}: {check['seen']}" for check in result["checks"] if check["verdict"] == "fail"]


def measure(big: BigRun, repeats: int) -> tuple[float, float, list[str]]:
    """Print one size. Returns the ratio to grep, the processor seconds of judging, and what is wrong."""
    size = sum(path.stat().st_size for path in big.logs())
    grep(big, None)  # fills the file cache
    rounds = [(grep(big, None), grep(big, "C"), analyze(big)) for _ in range(repeats)]
    ratio = statistics.median(ours.wall / theirs.wall for theirs, _, (ours, _) in rounds)
    processor = statistics.median(ours.processor / theirs.processor for theirs, _, (ours, _) in rounds)
    in_c = statistics.median(ours.wall / theirs.wall for _, theirs, (ours, _) in rounds)
    walls = [
        statistics.median(times) for times in zip(*((a.wall, b.wall, c[0].wall) for a, b, c in rounds), strict=True)
    ]
    memory = max(ours.memory for _, _, (ours, _) in rounds)
    print(
        f"{big.ranks:5d} ranks {size / 1e9:5.2f} GB: grep {walls[0]:6.2f} s (LC_ALL=C {walls[1]:.2f} s), analyze "
        f"{walls[2]:6.2f} s, ratio {ratio:.2f} (C {in_c:.2f}, processor time {processor:.2f}), {memory:.0f} MB",
        flush=True,
    )
    wrong = [] if memory <= MEMORY_MB else [f"{memory:.0f} MB of memory, limit {MEMORY_MB:g}"]
    for _, _, (ours, result) in rounds:
        if ours.code != 2 or failures(result):
            wrong.append(f"verdict {result['verdict']}: {failures(result)[:1]}")
    return ratio, statistics.median(ours.processor for _, _, (ours, _) in rounds) / size, wrong


def find_drift(big: BigRun) -> list[str]:
    """Change one digit and judge again. Returns what is wrong with the judgement."""
    rank, step = big.ranks - 5, big.steps - 3
    changed = big.drift(rank, step)
    took, result = analyze(big)
    found = [text for text in failures(result) if f"rank {rank}, step {step}: loss {changed}" in text]
    print(f"loss of rank {rank} at step {step} changed to {changed}: verdict {result['verdict']}, {found}")
    return [] if took.code == 1 and found else ["a changed loss was not found"]


def main() -> int:
    """Generate, measure, print, and say by the exit code whether every limit is kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=1024, help=f"a multiple of {8 * GROUPS} (default 1024)")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3, help="pairs of grep and analyze for each size")
    parser.add_argument(
        "--directory", type=Path, default=Path(tempfile.gettempdir()), help="needs 3.1 GB for the default"
    )
    parser.add_argument("--parts", type=int, nargs="+", default=[4, 2, 1], help="divisors of the ranks (default 4 2 1)")
    parser.add_argument("--no-limits", action="store_true", help="only the verdicts decide about the exit code")
    options = parser.parse_args()
    locale = {name: os.environ.get(name) for name in ("LC_ALL", "LANG")}
    print(f"grep -cE '{LOSSES}', {locale}, {os.cpu_count()} processors")
    wrong: list[str] = []
    each: list[float] = []
    for ranks in (options.ranks // part for part in options.parts):
        directory = Path(tempfile.mkdtemp(prefix="chaos-judging-", dir=options.directory))
        try:
            big = BigRun(directory, ranks, options.steps)
            big.make()
            ratio, per_byte, found = measure(big, options.repeats)
            wrong += found
            each.append(per_byte)
            if ranks == options.ranks:
                wrong += find_drift(big)
        finally:
            shutil.rmtree(directory)
    growth = each[-1] / each[0]
    print(f"processor time for a byte: {growth:.2f} times that of the first size (limit {GROWTH:g})")
    if not options.no_limits:
        wrong += [f"ratio {ratio:.2f} to grep, limit {RATIO:g}"] if ratio > RATIO else []
        wrong += [f"growth {growth:.2f}, limit {GROWTH:g}"] if growth > GROWTH else []
    print("\n".join(wrong) if wrong else "limits: kept")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
