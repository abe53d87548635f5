"""How a MindFormers job is started, and what a run adds to its configuration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
import yaml

from chaos.base.registry import registry
from chaos.doctor import PROBES
from chaos.jobs.kind import Command, JobError, Launch
from chaos.jobs.mindformers.job import KIND
from chaos.machine.job.protocol import Place
from chaos.scenario.models.scenario import Scenario

CONFIGURATION = """\
seed: 7
output_dir: ./elsewhere
train_dataset: {data_files: data/train.json, note: data/none.json}
callbacks:
  - {type: MFLossMonitor}
  - {type: CheckpointMonitor, prefix: tiny, save_checkpoint_steps: 4, checkpoint_format: safetensors}
"""

Make = Callable[..., Launch]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A launch beside a configuration and a checkout, in an environment that has msrun."""
    for name in ("bin", "logs", "run", "checkout/scripts", "checkout/data"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "bin" / "msrun").write_text("")
    (tmp_path / "checkout" / "run_mindformer.py").write_text("")
    (tmp_path / "checkout" / "scripts" / "msrun_launcher.sh").write_text("")
    (tmp_path / "checkout" / "data" / "train.json").write_text("")

    def make(*, resume: bool = False, ranks: int = 2, more: str = "", logs: str = "logs", **job: Any) -> Launch:
        (tmp_path / "job.yaml").write_text(CONFIGURATION + more, "utf-8")
        described = {"kind": "mindformers", "config": "job.yaml", "steps": 12, **job}
        scenario = Scenario.model_validate({"chaos": 1, "name": "n", "cluster": {"ranks": ranks}, "job": described})
        place = (tmp_path, tmp_path / "run", tmp_path / logs)
        return Launch(scenario, *place, resume, (21000, 21001), tmp_path / "bin" / "python", "standin")

    return make


def trained_from(command: Command) -> dict[str, Any]:
    """The configuration that this command trains from."""
    words = [word for part in command.argv for word in part.split()]
    (path,) = [word.removeprefix("--config=") for word in words if word.startswith("--config=")]
    read: dict[str, Any] = yaml.safe_load(Path(path).read_text("utf-8"))
    return read


def test_the_kind_is_registered_and_its_needs_can_be_probed() -> None:
    assert registry("jobs").load("mindformers") is KIND
    assert set(KIND.needs) <= set(PROBES)


def test_the_installed_package_is_started_by_msrun_with_a_program_that_imports_nothing_of_chaos(make: Make) -> None:
    argv = KIND.command(make()).argv
    assert argv[0].endswith("bin/msrun")
    assert {"--worker_num=2", "--local_worker_num=2", "--master_port=21000", "--join=False"} <= set(argv)
    program = Path(next(argument for argument in argv if argument.endswith(".py")))
    assert "chaos" not in "".join(line for line in program.read_text("utf-8").splitlines() if "import" in line[:7])


def test_the_runs_own_directory_is_named_as_shared_beside_those_of_the_caller(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHARED_PATHS", raising=False)
    assert KIND.command(make()).environment["SHARED_PATHS"] == str(tmp_path / "run" / "output")
    monkeypatch.setenv("SHARED_PATHS", "/mnt/data")
    assert KIND.command(make(resume=True)).environment["SHARED_PATHS"] == f"{tmp_path}/run/output,/mnt/data"


def test_a_checkout_is_started_by_its_own_script(make: Make, tmp_path: Path) -> None:
    command = KIND.command(make(checkout="checkout", arguments=["--epochs", "two words"]))
    assert command.argv[:2] == ("bash", str(tmp_path / "checkout/scripts/msrun_launcher.sh"))
    order, ranks, port, logs, join, seconds = command.argv[2:]
    assert order.startswith(f"{tmp_path}/checkout/run_mindformer.py --config=")
    assert order.endswith("--epochs 'two words'")
    assert (ranks, port, logs, join, seconds) == ("2", "21000", str(tmp_path / "logs"), "False", "600")
    assert command.path == (tmp_path / "checkout",)


def test_a_checkout_on_several_nodes_says_which_node_this_is(make: Make, tmp_path: Path) -> None:
    place = Place(1, 2, (2, 3), 4, "10.0.0.6", "10.0.0.5", tmp_path)
    launch = replace(make(checkout="checkout", ranks=4), place=place)
    ranks, local, master, port, node, logs, join, seconds = KIND.command(launch).argv[3:]
    assert (ranks, local, master, port, node) == ("4", "2", "10.0.0.5", "21000", "1")
    assert (logs, join, seconds) == (str(tmp_path / "logs"), "False", "600")


def test_one_rank_is_started_by_msrun_since_the_script_would_train_nothing(make: Make, tmp_path: Path) -> None:
    argv = KIND.command(make(checkout="checkout", ranks=1)).argv
    assert argv[0].endswith("msrun")
    assert str(tmp_path / "checkout/run_mindformer.py") in argv


def test_a_directory_that_is_no_checkout_is_named(make: Make) -> None:
    with pytest.raises(JobError, match=r"job\.checkout: there is no file .*/bin/run_mindformer\.py"):
        KIND.command(make(checkout="bin"))


def test_logs_that_the_script_would_split_are_refused(make: Make, tmp_path: Path) -> None:
    (tmp_path / "my logs").mkdir()
    with pytest.raises(JobError, match=r"cannot log to .*my logs"):
        KIND.command(make(checkout="checkout", logs="my logs"))


def test_a_checkout_brings_mindformers_itself(make: Make) -> None:
    assert "mindformers" in KIND.needs_for(make().scenario)
    assert "mindformers" not in KIND.needs_for(make(checkout="checkout").scenario)


@pytest.mark.parametrize("name", ["mindformers", "mindspore"])
def test_a_genuine_kind_promises_nothing_that_only_a_device_layer_sees(name: str) -> None:
    """Else every rank's reduced gradients would be unknown, and a trigger would wait for a phase that never comes."""
    traits = registry("jobs").load(name).traits
    assert traits.genuine and not traits.gradients
    # A script of one's own may have a loop in which the agent sees gradients and updates.
    hidden = {"allreduce.enter"} if name == "mindspore" else {"forward", "allreduce.enter", "optimizer.update"}
    assert not traits.observable & hidden


def test_mechanisms_are_switched_on_with_the_place_of_the_controller(make: Make) -> None:
    environment = KIND.command(make(protection=("TTP",))).environment
    assert environment["MS_ENABLE_TFT"] == "{TTP:1}"
    assert (environment["MS_TFT_IP"], environment["MS_TFT_PORT"]) == ("127.0.0.1", "21001")
    assert "MS_ENABLE_TFT" not in KIND.command(make()).environment


def test_the_agent_may_come_as_a_callback_behind_all_others(make: Make) -> None:
    command = KIND.command(make(loading="callback"))
    *others, last = trained_from(command)["callbacks"]
    assert [one["type"] for one in others] == ["MFLossMonitor", "CheckpointMonitor"]
    module, _, name = last["auto_register"].partition(".")
    assert name == last["type"]
    assert f"class {name}(" in (Path(command.environment["REGISTER_PATH"]) / f"{module}.py").read_text("utf-8")
    assert not command.agent_by_path
    assert KIND.command(make()).agent_by_path


def test_the_run_trains_from_a_copy_that_writes_into_the_run(make: Make, tmp_path: Path) -> None:
    copy = trained_from(KIND.command(make(overrides={"seed": 9})))
    assert copy["output_dir"] == str(tmp_path / "run/output")
    assert copy["seed"] == 9
    assert "resume_training" not in copy and "load_checkpoint" not in copy
    assert (tmp_path / "job.yaml").read_text("utf-8") == CONFIGURATION


def test_a_file_of_the_checkout_is_found_from_the_run(make: Make, tmp_path: Path) -> None:
    copy = trained_from(KIND.command(make(checkout="checkout")))
    assert copy["train_dataset"]["data_files"] == str(tmp_path / "checkout/data/train.json")
    assert copy["train_dataset"]["note"] == "data/none.json"


IN_CHECKOUT = {
    "directory": ({"data_loader": {"any": "./dataset"}}, "dataset"),
    "slash at the end": ({"any": "dataset/"}, "dataset/"),
    "known key": ({"tokenizer": {"vocab_file": "vocab.txt"}}, "vocab.txt"),
    "directory of a known key": ({"data_loader": {"dataset_dir": "dataset"}}, "dataset"),
    "list below a known key": ({"data_loader": {"data_files": {"train": ["vocab.txt"]}}}, "vocab.txt"),
    "weights": ({"load_checkpoint": "vocab.txt"}, "vocab.txt"),
    "indexed data": ({"config": {"data_path": ["./dataset/wiki"]}}, "dataset/wiki"),
}
NOT_IN_CHECKOUT: dict[str, dict[str, Any]] = {
    "name": {"model_name": "dataset"},
    "another place": {"vocab_file": "none.txt", "any": "none/"},
    "what is written": {"save_graphs_path": "./dataset", "tensorboard": {"tensorboard_dir": "dataset"}},
    "no path at all": {"a_file": None, "b_file": 5, "c_file": "", "d_file": "x" * 5000, "e": "/" + "x" * 5000},
}


@pytest.mark.parametrize(("given", "where"), IN_CHECKOUT.values(), ids=list(IN_CHECKOUT))
def test_whatever_is_in_the_checkout_is_found_from_the_run(
    make: Make, tmp_path: Path, given: dict[str, Any], where: str
) -> None:
    (tmp_path / "checkout/dataset").mkdir()
    (tmp_path / "checkout/dataset/wiki.bin").write_text("")
    (tmp_path / "checkout/vocab.txt").write_text("")
    value: Any = trained_from(KIND.command(make(checkout="checkout", overrides={"given": given})))["given"]
    while not isinstance(value, str):
        (value,) = value.values() if isinstance(value, dict) else value
    assert value == f"{tmp_path}/checkout/{where}"


@pytest.mark.parametrize("given", NOT_IN_CHECKOUT.values(), ids=list(NOT_IN_CHECKOUT))
def test_what_is_no_path_of_the_checkout_stays_as_it_is(make: Make, tmp_path: Path, given: dict[str, Any]) -> None:
    (tmp_path / "checkout/dataset").mkdir()
    assert trained_from(KIND.command(make(checkout="checkout", overrides={"given": given})))["given"] == given


def test_a_resume_trains_from_what_the_run_has_begun_with(make: Make) -> None:
    begun = KIND.command(make(loading="callback"))
    resumed = trained_from(KIND.command(make(resume=True, loading="callback", more="later: 1\n")))
    assert "later" not in resumed
    assert resumed["callbacks"] == trained_from(begun)["callbacks"]
    assert resumed["resume_training"] is True


def test_the_sources_of_a_checkout_are_part_of_the_baselines_key(make: Make, tmp_path: Path) -> None:
    scenario = make(checkout="checkout").scenario
    before = KIND.fingerprint(scenario, tmp_path)
    (tmp_path / "checkout/mindformers").mkdir()
    (tmp_path / "checkout/mindformers/wrapper.py").write_text("changed = 1\n")
    assert KIND.fingerprint(scenario, tmp_path) != before
    assert not any(name.startswith("checkout") for name in KIND.fingerprint(make().scenario, tmp_path))


def test_the_files_that_a_configuration_names_are_part_of_the_baselines_key(make: Make, tmp_path: Path) -> None:
    weights = tmp_path / "weights"
    weights.mkdir()
    (weights / "a.ckpt").write_text("one")
    scenario = make(checkout="checkout", more=f"load_checkpoint: {weights}\n").scenario
    seen = [KIND.fingerprint(scenario, tmp_path)]
    (tmp_path / "checkout/data/train.json").write_text("other data")
    seen.append(KIND.fingerprint(scenario, tmp_path))
    (weights / "a.ckpt").write_text("another")
    seen.append(KIND.fingerprint(scenario, tmp_path))
    assert len({tuple(one.items()) for one in seen}) == 3
    # What earlier runs have written where the configuration would write is nothing that this one reads.
    (tmp_path / "checkout/elsewhere").mkdir()
    (tmp_path / "checkout/elsewhere/old.ckpt").write_text("")
    assert KIND.fingerprint(scenario, tmp_path) == seen[-1]


def test_a_resume_goes_on_from_the_runs_checkpoints_in_the_format_that_is_saved(make: Make, tmp_path: Path) -> None:
    copy = trained_from(KIND.command(make(resume=True)))
    assert copy["load_checkpoint"] == str(tmp_path / "run/output/checkpoint")
    assert (copy["resume_training"], copy["load_ckpt_format"]) == (True, "safetensors")


@pytest.mark.parametrize(
    ("model", "saved", "read"),
    [("", "ckpt", "ckpt"), ("use_legacy: True\n", "ckpt", "ckpt"), ("use_legacy: False\n", "ckpt", "safetensors")],
)
def test_models_of_the_new_kind_are_read_as_safetensors(make: Make, model: str, saved: str, read: str) -> None:
    saving = [{"type": "CheckpointMonitor", "checkpoint_format": saved, "save_checkpoint_steps": 4}]
    assert (
        trained_from(KIND.command(make(resume=True, more=model, overrides={"callbacks": saving})))["load_ckpt_format"]
        == read
    )


SECTION = "checkpoint: {prefix: tiny}\n"
TOP = "use_legacy_format: False\n"
CALLBACK = {"callbacks": [{"type": "CheckpointMonitor", "use_legacy_format": False}]}
ANEW = {"load_ckpt_format": "safetensors"}
BY_SECTION = {"checkpoint.load_path": "output/checkpoint", "checkpoint.no_load_optim": False}
BY_PATH = {"load_checkpoint": "output/checkpoint", "resume_training": True}
LEGACY = {"load_ckpt_format": "ckpt"}


@pytest.mark.parametrize(
    ("version", "more", "overrides", "resumes"),
    [
        ((2, 1), SECTION, {}, {**ANEW, **BY_SECTION}),
        ((2, 1), TOP, {}, {**ANEW, **BY_SECTION}),
        ((2, 1), "", CALLBACK, {**LEGACY, **BY_PATH}),  # 2.1 saves in the legacy layout all the same
        ((1, 8), TOP, {}, {**ANEW, **BY_PATH}),
        ((1, 8), SECTION, CALLBACK, {**LEGACY, **BY_PATH}),
        ((1, 7), "", CALLBACK, {**ANEW, **BY_PATH, "ckpt_use_legacy_format": False}),
        ((1, 6), TOP, CALLBACK, {**LEGACY, **BY_PATH}),
        (None, TOP, {}, {**ANEW, **BY_PATH, **BY_SECTION}),  # MindFormers is on the ranks' machines only
    ],
)
def test_a_resume_uses_the_keys_of_the_layout_that_this_version_saves_in(
    make: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: tuple[int, int] | None,
    more: str,
    overrides: dict[str, Any],
    resumes: dict[str, Any],
) -> None:
    def installed(name: str) -> str:
        if version is None:
            raise PackageNotFoundError(name)
        return f"{version[0]}.{version[1]}.0"

    monkeypatch.setattr("chaos.jobs.mindformers.version.metadata.version", installed)
    begun = trained_from(KIND.command(make(more=more, overrides=overrides)))
    copy = trained_from(KIND.command(make(resume=True, more=more, overrides=overrides)))
    found = {key: value for key, value in copy.items() if key != "checkpoint" and begun.get(key) != value}
    if copy.get("checkpoint") != begun.get("checkpoint"):
        own = begun.get("checkpoint", {})
        found |= {f"checkpoint.{key}": value for key, value in copy["checkpoint"].items() if key not in own}
    found = {key: str(value).removeprefix(f"{tmp_path}/run/") for key, value in found.items()}
    assert found == {key: str(value) for key, value in resumes.items()}


def test_a_suffix_of_the_callers_shell_does_not_move_the_logs(make: Make) -> None:
    assert KIND.command(make(checkout="checkout")).environment["MF_LOG_SUFFIX"] == ""
