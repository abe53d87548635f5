"""``pytest scenarios/``: every matrix cell of a scenario file is a test.

Collects YAML files whose first key is ``chaos``. Each cell runs ``chaos run`` in a process of its own and is judged by
its output. The run happens in the test's set-up and the judgement in its call, so that pytest itself keeps a
verdict *unknown* and a failure of the harness (errors) apart from a verdict *fail* (a failure).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from chaos.scenario.load import Cell
    from chaos.scenario.models.scenario import Finding, Scenario
    from chaos.scenario.names import KnownNames

    class _Outcome(Exception):
        def __init__(self, msg: str, pytrace: bool) -> None: ...
else:
    # pytest shows the text of this kind of exception alone, without a traceback, also when it comes from a set-up.
    _Outcome = pytest.fail.Exception

_INTERRUPT_SECONDS = 120.0
"""How long an interrupted run may take to stop its job and undo its faults."""

_UNUSED: pytest.StashKey[set[str]] = pytest.StashKey()
"""Names given with --chaos-set that no collected file has used yet."""


class ScenarioFailed(_Outcome):
    """The verdict is fail: an expectation was not met."""

    __module__ = "builtins"


class FailedElsewhere(_Outcome):
    """The verdict is fail, but not in the checks in which the scenario's known finding fails."""

    __module__ = "builtins"


class NoVerdict(_Outcome):
    """There is no verdict, or it is unknown."""

    __module__ = "builtins"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the plugin's options."""
    group = parser.getgroup("chaos", "chaos scenarios")
    group.addoption("--chaos-reports", metavar="DIR", help="Directory for the runs. Default: reports in the rootdir.")
    group.addoption(
        "--chaos-set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="Set a variable in every scenario that has it; repeat it for more.",
    )
    group.addoption(
        "--chaos-sdk",
        choices=("auto", "standin", "vendor"),
        default="auto",
        help="The vendor's mindio_ttp, the stand-in, or whichever the machine has. Default: %(default)s.",
    )
    group.addoption("--chaos-platform", metavar="NAME", help="Platform of the jobs, whatever the files say.")
    group.addoption("--chaos-inventory", metavar="FILE", help="The hosts of --chaos-platform ssh.")
    parser.addini("chaos_command", "Command that runs chaos. Default: this Python with -m chaos.", type="args")


def pytest_configure(config: pytest.Config) -> None:
    """Check the options before anything is collected."""
    config.stash[_UNUSED] = set(_settings(config))
    if config.getoption("--chaos-inventory"):
        from chaos.platforms.kind import with_inventory

        names = with_inventory()
        if config.getoption("--chaos-platform") not in names:
            raise pytest.UsageError(f"--chaos-inventory: is for --chaos-platform {' or '.join(names)}")


def _settings(config: pytest.Config) -> dict[str, str]:
    settings: dict[str, str] = {}
    for text in config.getoption("--chaos-set"):
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise pytest.UsageError(f"--chaos-set {text!r} is not name=value")
        settings[name] = value
    return settings


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the directories of runs: they hold copies of scenarios, and files of jobs."""
    from chaos.scenario.recorded import is_run

    return True if is_run(collection_path) else None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ScenarioFile | None:
    """Collect scenario files, and no other YAML files."""
    if file_path.suffix not in (".yaml", ".yml"):
        return None
    from chaos.scenario.find import is_scenario_file

    return ScenarioFile.from_parent(parent, path=file_path) if is_scenario_file(file_path) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse a setting that no scenario has: it is a typing error."""
    if (unused := config.stash[_UNUSED]) and any(isinstance(item, ScenarioItem) for item in items):
        raise pytest.UsageError(f"--chaos-set: no collected scenario has a variable {', '.join(sorted(unused))}")


class ScenarioFile(pytest.File):
    """A scenario file; collects one item for each matrix cell, or for each pair of cells that it compares."""

    def collect(self) -> Iterator[ScenarioItem]:
        """Load the file. A broken one is a collection error that shows the places and no traceback."""
        from chaos.base.registry import RegistryError
        from chaos.scenario.errors import ScenarioError
        from chaos.scenario.pairs import pairs

        try:
            cells, settings = self._load()
        except (ScenarioError, RegistryError) as error:
            raise self.CollectError(str(error)) from None
        groups: Sequence[tuple[Cell, ...]] = pairs(cells) or [(cell,) for cell in cells]
        for group in groups:
            yield ScenarioItem.from_parent(self, name=_item_name(group), cells=group, settings=settings)

    def _load(self) -> tuple[tuple[Cell, ...], dict[str, str]]:
        from chaos.run.prepare.on_platform import on_platform
        from chaos.run.prepare.prepare import known_names
        from chaos.scenario.load import load_scenario

        names = known_names()
        loaded = load_scenario(self.path, settings={}, names=names)
        known = loaded.cells[0].scenario.variables
        settings = {name: value for name, value in _settings(self.config).items() if name in known}
        self.config.stash[_UNUSED] -= set(settings)
        if settings:
            loaded = load_scenario(self.path, settings=settings, names=names)
        loaded = on_platform(loaded, self._platform(names), _inventory(self.config))
        return tuple(loaded.cells), settings

    def _platform(self, names: KnownNames) -> str | None:
        """Return the platform in the command line. Raises UsageError for an unknown one."""
        name: str | None = self.config.getoption("--chaos-platform")
        if name is not None and names.platforms is not None and name not in names.platforms:
            known = ", ".join(sorted(names.platforms))
            raise pytest.UsageError(f"--chaos-platform: no platform {name!r}; there are {known}")
        return name


def _inventory(config: pytest.Config) -> Path | None:
    """Return the inventory in the command line, relative to pytest's working directory."""
    given = config.getoption("--chaos-inventory")
    return config.invocation_params.dir / given if given else None


def _item_name(cells: tuple[Cell, ...]) -> str:
    """Return ``name[cell]``; for two compared cells, ``name[one | other]``."""
    names = " | ".join(cell.name for cell in cells)
    return f"{cells[0].scenario.name}[{names}]" if names else cells[0].scenario.name


def lacking(scenario: Scenario, reports: Path) -> list[str]:
    """Return the needs of a scenario that this machine does not meet: a sentence for each."""
    from chaos.doctor import Machine, probe
    from chaos.run.prepare.needs import needs_of_scenario
    from chaos.run.prepare.registered import look_up_names

    names = look_up_names(scenario)
    machine = Machine(reports=reports, settings=names.named.settings_in(scenario))
    probes = probe(needs_of_scenario(scenario, names), machine)
    return [f"{candidate.need}: {candidate.seen}; {candidate.advice}" for candidate in probes if not candidate.ok]


class ScenarioItem(pytest.Item):
    """One matrix cell of a scenario, or two that are compared: both are run and judged, and then the pair."""

    def __init__(self, *, cells: tuple[Cell, ...], settings: dict[str, str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cells = cells
        self.cell = cell = cells[0]
        self.settings = settings
        self.results: Sequence[Mapping[str, Any]] = ()
        self.comparisons: Sequence[Mapping[str, Any]] = ()
        # `-k` has no `=`, so that values are selected as `-k victim-2`.
        self.extra_keyword_matches.update(
            f"{name}-{value}" for other_cell in cells for name, value in other_cell.values.items()
        )
        for tag in cell.scenario.tags:
            # Tags need not be registered in the project's configuration: the scenario file declares them.
            self.config.addinivalue_line("markers", f"{tag}: a tag of chaos scenarios")
            self.add_marker(tag)

    def setup(self) -> None:
        """Run the scenario. Skips if the machine does not meet a need; raises if there is no verdict."""
        if self.config.getoption("setuponly", False):
            return
        if missing := lacking(self.cell.scenario, self._reports):
            pytest.skip("this machine lacks " + ", ".join(missing))
        status, output, errors = run_to_end(self.command(), self.config.rootpath)
        if errors:
            self.add_report_section("setup", "stderr", errors)
        self.results, self.comparisons = self._read(status, output, errors)
        for cell, result in zip(self.cells, self.results, strict=False):
            place = f"[{cell.name}]" if len(self.cells) > 1 else ""
            self.user_properties.extend((f"{name}{place}", value) for name, value in properties(result))
        if self._verdict() == "unknown":
            raise NoVerdict(self._describe("unknown"), pytrace=False)
        # Only now, since a finding may hold with one SDK only, and the result names the SDK of the run.
        if (known := self._known()) is not None:
            where = ", ".join(self._failing()) + (f" with the SDK {known.sdk}" if known.sdk else "")
            reason = f"{known.id}: known defect, fails in {where}; see docs/findings.md"
            self.add_marker(pytest.mark.xfail(reason=reason, raises=ScenarioFailed, strict=known.always))

    def runtest(self) -> None:
        """Judge the run. Raises ScenarioFailed for verdict fail, FailedElsewhere beyond its known finding."""
        if self._verdict() == "pass":
            return
        from chaos.run.prepare.known_failure import failing_checks, unexpected

        text, failing = self._describe("fail"), self._failing()
        others = unexpected(failing_checks(self.results, self.comparisons), failing)
        if others and (known := self._known()) is not None:
            explanation = f"{known.id} fails in {', '.join(failing)}; this failed in {', '.join(others)} too"
            raise FailedElsewhere(f"{text}\n{explanation}", pytrace=False)
        raise ScenarioFailed(text, pytrace=False)

    def _failing(self) -> tuple[str, ...]:
        """Return the checks in which it may fail by its finding."""
        from chaos.run.prepare.known_failure import failing_by, sdk_of

        return failing_by(self.cell.scenario, map(sdk_of, self.results))

    def _known(self) -> Finding | None:
        """Return the scenario's finding if it holds with the SDK of the run."""
        from chaos.run.prepare.known_failure import holding, sdk_of

        return holding(self.cell.scenario, map(sdk_of, self.results))

    def _verdict(self) -> str:
        verdicts = {result["verdict"] for result in (*self.results, *self.comparisons)}
        return next((verdict for verdict in ("fail", "unknown") if verdict in verdicts), "pass")

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the scenario file, its first line, and the name of the cell."""
        return self.path, 0, self.name

    @property
    def _reports(self) -> Path:
        given = self.config.getoption("--chaos-reports")
        return self.config.invocation_params.dir / given if given else self.config.rootpath / "reports"

    def command(self) -> list[str]:
        """Return the command that runs this cell."""
        command = ["run", str(self.path)]
        command += ["--json", "--reports", str(self._reports), "--sdk", self.config.getoption("--chaos-sdk")]
        if (workers := int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))) > 1:
            # The first of several jobs would take all cores, and the others would wait for it.
            command += ["--cores", str(max(1, len(os.sched_getaffinity(0)) // workers))]
        if platform := self.config.getoption("--chaos-platform"):
            command += ["--platform", platform]
        if (inventory := _inventory(self.config)) is not None:
            command += ["--inventory", str(inventory)]
        for cell in self.cells:
            command += ["--cell", cell.name] if cell.name else []
        for name, value in self.settings.items():
            command += ["--set", f"{name}={value}"]
        return self._tied(command)

    def _tied(self, arguments: list[str]) -> list[str]:
        """Return a command with these arguments that ends in order when this process does, even by SIGKILL."""
        from chaos.cli.with_parent import command_of, tied

        own: list[str] = self.config.getini("chaos_command")
        return tied(os.getpid(), [*own, *arguments]) if own else command_of(os.getpid(), arguments)

    def _read(
        self, status: int, output: str, errors: str
    ) -> tuple[list[Mapping[str, Any]], Sequence[Mapping[str, Any]]]:
        """Return the results of the cells that ran, and their comparison. Raises NoVerdict if the run gave none."""
        from chaos.report.result import from_json

        try:
            answer = json.loads(output)
            cells: list[Mapping[str, Any]] = [
                {**cell["result"], "run": cell["run"], "directory": cell["directory"]} for cell in answer["cells"]
            ]
            compared: Sequence[Mapping[str, Any]] = answer.get("comparisons", [])
            verdicts = [cell["verdict"] for cell in (*cells, *compared)]
            complete = len(cells) == len(self.cells) and len(compared) == len(self.cells) - 1
            # After a cell that does not pass the next one is not run; its own verdict is enough then.
            if status in (0, 1, 2) and cells and (complete or verdicts[-1] != "pass"):
                for cell in cells:
                    from_json(dict(cell))
                return cells, compared
        except (ValueError, KeyError, TypeError):
            pass  # There is no result to read; what the command said on its way is shown instead.
        what = {3: "the harness failed", 64: "the scenario cannot be used", 130: "the run was interrupted"}
        reason = what.get(status, f"chaos ended with status {status} and no result")
        raise NoVerdict(f"{self.name}: {reason}\n{errors.strip() or output.strip()}", pytrace=False)

    def _describe(self, verdict: str) -> str:
        scenario = self._shown(self.path)
        lines = [describe(result, scenario=scenario) for result in self.results if result["verdict"] != "pass"]
        lines += [
            describe_comparison(self.name, comparison)
            for comparison in self.comparisons
            if comparison["verdict"] != "pass"
        ]
        return "\n".join(lines) or f"{self.name}: {verdict}"

    def _shown(self, path: Path) -> str:
        root = self.config.rootpath
        return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def run_to_end(command: Sequence[str], directory: Path) -> tuple[int, str, str]:
    """Run a command and return its exit status, output and error output.

    It stays in this process group, so Ctrl-C on the terminal reaches it too. When this process alone is interrupted it
    is interrupted as well, and waited for: it has a job to stop and faults to undo.
    """
    process = subprocess.Popen(
        command,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    try:
        output, errors = process.communicate()
    except BaseException:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=_INTERRUPT_SECONDS)
        raise
    return process.returncode, output, errors


def properties(result: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Yield JUnit properties of a result: the run, the verdict, its headline, and the recovery's phases in seconds."""
    yield "run", result["run"]
    yield "verdict", result["verdict"]
    if headline := result.get("headline"):
        yield "headline", headline["text"]
        yield "headline.id", headline["id"]
    recovery = result.get("recovery") or {}
    if recovery.get("mechanism"):
        yield "recovery.mechanism", recovery["mechanism"]
    for phase, seconds in (recovery.get("phases") or {}).items():
        if seconds is not None:
            yield f"recovery.{phase}", round(seconds, 3)
    if recovery.get("total") is not None:
        yield "recovery.total", round(recovery["total"], 3)


def describe(result: Mapping[str, Any], *, scenario: str) -> str:
    """Return the headline of a result that does not pass, its causes and their places, in at most ten lines.

    ``scenario`` is the file to name for lines of the scenario, of which the run holds only a copy.
    """
    from chaos.report.result import from_json
    from chaos.report.short import short_lines

    lines = short_lines(from_json(dict(result)), Path(result["directory"]), scenario=scenario)
    return "\n".join(lines)


def describe_comparison(name: str, comparison: Mapping[str, Any]) -> str:
    """Return the expectation of the second run beside the first, and the observation."""
    lines = [f"{name}: compared, {comparison['verdict']}"]
    for statement in comparison["statements"]:
        if statement["verdict"] != "pass":
            lines += [f"  {statement['measure']} ({statement['verdict']})", f"    expected  {statement['expected']}"]
            lines += [f"    seen      {statement['seen']}"]
    return "\n".join(lines)
