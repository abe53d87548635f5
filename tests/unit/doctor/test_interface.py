"""MindSpore and MindIO TFT that would call each other wrongly are recognised from their files, before a run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest

import chaos
from chaos.base.refusal import Refused
from chaos.doctor import Machine, Probe, probe
from chaos.doctor.sdk.fit import CONTROLLER, disagreements
from chaos.doctor.sdk.needs import Needs, Use, needs_of
from chaos.doctor.sdk.offered import Offer, Offered, offered_by
from chaos.run.driver import _refuse_if_lacking
from chaos.run.prepare.needs import needs_of_scenario
from chaos.run.prepare.prepare import known_names, prepare
from chaos.scenario.load import load_scenario
from tests.kit.shipped import shipped

BOOM = 'raise SystemExit("this file was imported")\n'

MINDSPORE = {
    "mindspore/train/model.py": """
        def wrapper(obj, tft):
            obj.tft.tft_end_updating_os(obj.step)
            tft.tft_report_error(tft.ReportState.RS_UCE.value)
            try:
                tft.tft_get_reboot_type()
            except Exception:
                return
        """,
    "mindspore/train/callback/fault.py": """
        def _rename(step, ctx): ...
        class Callback:
            def _named(self, step): ...
            def _fits(self, step, ctx): ...
            @staticmethod
            def _static(step): ...
            @wrapped
            def _wrapped(self): ...
            def register(self):
                self.tft.tft_register_rename_handler(_rename, self)
        """,
    "mindspore/utils/utils.py": """
        class Handle:
            def stub(self):
                from mindio_ttp.controller_ttp import tft_register_mindx_callback
                def report_fault_ranks_func(ranks): ...
                tft_register_mindx_callback("report_fault_ranks", report_fault_ranks_func)
        """,
}

MINDIO = {
    "mindio_ttp/__init__.py": "",
    "mindio_ttp/framework_ttp/__init__.py": """
        from .decorator import ReportState, tft_end_updating_os, tft_report_error, tft_register_rename_handler
        """,
    "mindio_ttp/framework_ttp/decorator.py": """
        from enum import Enum
        class ReportState(Enum):
            RS_NORMAL = 0
            RS_UCE = 2
        class Kept:
            def register_rename(self, func, ctx):
                self._rename = func
                self._context = ctx
            def rename(self, step):
                self._rename(step, self._context)
        kept = Kept()
        def tft_register_rename_handler(func, ctx=None):
            kept.register_rename(func, ctx)
        def tft_end_updating_os(step): ...
        def tft_report_error(state, error_code=""): ...
        """,
    "mindio_ttp/controller_ttp/__init__.py": "from agent_api import tft_register_mindx_callback\n",
    "mindio_ttp/controller_ttp/agent_api.py": """
        def tft_register_mindx_callback(action, func): ...
        def fault_ranks(ranks): execute("report_fault_ranks", (ranks,))
        """,
}

RENAMES = "self._rename(step, self._context)"
OTHERS = """self._rename(step, 1, 2)
        class Another:
            def rename(self):
                self._rename(1, 2)"""

Install = Callable[..., Machine]


@pytest.fixture
def install(tmp_path: Path) -> Install:
    """A machine with both packages, each pair of texts exchanged in their files. Importing any ends the test."""

    def make(*changes: tuple[str, str]) -> Machine:
        for name, text in {**MINDSPORE, **MINDIO}.items():
            for old, new in changes:
                text = text.replace(old, new)
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text) + BOOM)
        return Machine(package=lambda name: tmp_path / name, version=lambda name: f"of {name}")

    return make


def seen(machine: Machine, need: str = "interface") -> Probe:
    (found,) = probe([need], machine)
    return found


@pytest.mark.parametrize(
    ("name", "own_agent"), [*((name, False) for name in CONTROLLER), ("tft_register_mindx_callback", True)]
)
def test_who_hosts_the_controller_needs_its_names_whoever_the_agent_is(name: str, own_agent: bool) -> None:
    needs = Needs([Use("controller_ttp", name, "here")])
    (found,) = disagreements(needs, Offered({"controller_ttp": {}}))
    assert found.own_agent is own_agent
    assert disagreements(needs, Offered({"controller_ttp": {name: Offer("there")}})) == []


def test_the_stand_in_offers_what_the_vendors_controller_does() -> None:
    """Which arguments may be left out is read from a file, and not what they are then."""
    offered = offered_by(Path(chaos.__file__).parent / "rehearsal" / "sdk" / "mindio_ttp")
    ours = {name: str(offered.names["controller_ttp"][name].signature) for name in CONTROLLER}
    assert ours == {
        "tft_init_controller": "(rank, world_size, enable_local_copy, enable_arf=None, enable_zit=None)",
        "tft_start_controller": "(bind_ip, port, enable_tls=None, tls_info=None)",
        "tft_destroy_controller": "()",
        "tft_query_high_availability_switch": "()",
    }
    assert set(CONTROLLER[:3]) <= offered.names["framework_ttp"].keys()


def test_a_pair_that_agrees_is_fit(install: Install) -> None:
    machine = install()
    assert seen(machine) == Probe("interface", True, "mindspore of mindspore and mindio_ttp of mindio_ttp agree")
    assert seen(machine, "own agent").ok


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("def tft_end_updating_os(step)", "def tft_end_updating_os()"), "tft_end_updating_os cannot be called with 1"),
        (
            ("def tft_end_updating_os(step)", "def tft_end_updating_os(step, rank)"),
            "cannot be called with 1 argument (",
        ),
        ((" tft_end_updating_os, tft_report", " tft_report"), "mindio_ttp.framework_ttp has no tft_end_updating_os ("),
        (("RS_UCE = 2", "RS_MEMORY = 2"), "ReportState has no RS_UCE ("),
        (("self._rename(step, self._context)", "self._rename(step, 1, 2)"), "_rename cannot take the 3 arguments"),
        (("def _rename(step, ctx)", "def _rename(step)"), "_rename cannot take the 2 arguments"),
        ((RENAMES, OTHERS), "_rename cannot take the 3 arguments that the SDK passes"),
        (
            (RENAMES, RENAMES + "\n                " + RENAMES.replace(", self", ", 1, self")),
            "_rename cannot take the 3 arguments",
        ),
        (
            (RENAMES, "self._rename(step, context=self._context)"),
            "_rename cannot take the 2 arguments, context by name",
        ),
        (("handler(_rename,", "handler(self._named,"), "_named cannot take the 2 arguments"),
        (("handler(_rename,", "handler(self._static,"), "_static cannot take the 2 arguments"),
    ],
)
def test_what_disagrees_is_named_with_its_places(install: Install, change: tuple[str, str], told: str) -> None:
    found = seen(install(change))
    assert not found.ok
    assert told in found.seen
    assert "mindspore/train/" in found.seen
    assert "one release" in found.advice


@pytest.mark.parametrize(
    "change",
    [
        ("handler(_rename,", "handler(self._fits,"),
        ("handler(_rename,", "handler(self._wrapped,"),
        ("handler(_rename,", "handler(self._inherited,"),
        (RENAMES, "self._rename(step, ctx=self._context)"),
        (RENAMES, "self._rename(step, **self._context)"),
        (RENAMES, OTHERS.replace("1, 2)\n", "2)\n").replace("(1, 2)", "(1, 2, 3)")),
        (
            RENAMES,
            "call(self._rename, 1)\n        def other(it):\n            it._rename(1)\n            it._rename(1, 2)",
        ),
    ],
)
def test_what_fits_or_cannot_be_told_is_no_disagreement(install: Install, change: tuple[str, str]) -> None:
    assert seen(install(change)).ok


def test_a_call_that_may_fail_is_no_disagreement(install: Install) -> None:
    machine = install()
    assert machine.package is not None
    needs = needs_of(machine.package("mindspore"))  # type: ignore[arg-type]
    (guarded,) = [use for use in needs.uses if use.name == "tft_get_reboot_type"]
    assert guarded.guarded
    assert seen(machine).ok
    (told,) = [machine.package("mindspore")]
    assert told is not None
    (told / "train" / "model.py").write_text(dedent(MINDSPORE["mindspore/train/model.py"]).replace("return", "raise"))
    assert "no tft_get_reboot_type" in seen(machine).seen


def test_two_arguments_for_report_fault_ranks_take_mindspores_own_agent_only(install: Install) -> None:
    machine = install(("(ranks,))", "(ranks, {}))"))
    assert seen(machine).ok
    found = seen(machine, "own agent")
    assert not found.ok
    assert "report_fault_ranks_func cannot take the 2 arguments" in found.seen
    assert "job.agent: true" in found.advice


def test_a_missing_module_is_named(install: Install) -> None:
    machine = install()
    package = machine.package("mindio_ttp")
    assert package is not None
    (package / "framework_ttp" / "__init__.py").unlink()
    assert "mindio_ttp.framework_ttp is missing" in seen(machine).seen


def test_a_mindspore_without_these_calls_is_not_called_fit(install: Install) -> None:
    assert not seen(install(("tft", "xyz"))).ok


def test_without_the_vendors_package_there_is_nothing_to_compare(tmp_path: Path) -> None:
    found = seen(Machine(package=lambda name: tmp_path / name if name == "mindspore" else None))
    assert found.ok


def test_mindspores_calls_fit_the_stand_in() -> None:
    mindspore = Machine().package("mindspore")
    if mindspore is None:
        pytest.skip("MindSpore is not installed for this Python")
    needs = needs_of(mindspore)
    names = {use.name for use in needs.uses}
    assert names >= {"tft_init_processor", "tft_end_updating_os", "tft_wait_next_action", "ReportState", "RepairType"}
    assert {function.name for function in needs.registered} >= {"tft_register_save_ckpt_handler", "report_fault_ranks"}
    standin = Path(chaos.__file__).parent / "rehearsal" / "sdk" / "mindio_ttp"
    assert disagreements(needs, offered_by(standin)) == []


@pytest.mark.parametrize(
    ("change", "name", "told"),
    [
        (("RS_UCE = 2", "RS_MEMORY = 2"), "kill-rank", "ReportState has no RS_UCE"),
        (("(ranks,))", "(ranks, {}))"), "arf-no-replacement", "report_fault_ranks_func cannot take the 2 arguments"),
        (("(ranks,))", "(ranks, {}))"), "arf", ""),  # with the cluster's agent
        (("RS_UCE = 2", "RS_MEMORY = 2"), "tre", ""),  # needs no SDK
        (("RS_UCE = 2", "RS_MEMORY = 2"), "plain-uce", ""),  # has no MindSpore
    ],
)
def test_only_a_run_on_the_vendors_package_is_refused(
    install: Install, monkeypatch: pytest.MonkeyPatch, change: tuple[str, str], name: str, told: str
) -> None:
    machine = install(change)
    pair = {"interface", "own agent"}
    monkeypatch.setattr("chaos.run.driver.Machine", lambda settings: machine)
    monkeypatch.setattr("chaos.run.driver.probe", lambda needs, machine: probe(set(needs) & pair, machine))
    loaded = load_scenario(shipped(name), settings={}, names=known_names())
    prepared = prepare(loaded, loaded.cells[0], "standin")
    _refuse_if_lacking(prepared)
    with pytest.raises(Refused, match=f"(?s){told}.*what it can run: chaos doctor$") if told else nullcontext():
        _refuse_if_lacking(replace(prepared, sdk="vendor"))


@pytest.mark.parametrize(
    ("name", "needed"),
    [("device-kill", True), ("device-uce", True), ("kill-rank", False), ("plain-uce", False), ("tre", False)],
)
def test_only_a_genuine_job_needs_the_package_to_have_a_mechanism_of_it(name: str, needed: bool) -> None:
    scenario = load_scenario(shipped(name), settings={}, names=known_names()).cells[0].scenario
    assert ("mindio_ttp" in needs_of_scenario(scenario)) is needed
