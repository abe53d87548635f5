"""How the rehearsal's job is started: msrun's arguments, the script's, and the environment."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from chaos.base.registry import registry
from chaos.doctor import PROBES
from chaos.jobs.kind import JobError, JobKind, Launch
from chaos.jobs.msrun import msrun_argv, tft_switches
from chaos.observe.checkpoints.norm_record import read_norm_record
from chaos.rehearsal.job import KIND
from chaos.rehearsal.jobs.mnist_files import write_mnist
from chaos.scenario.models.scenario import Scenario
from chaos.scenario.models.terms import Phase

Make = Callable[..., Launch]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A launch in an environment that has msrun."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "msrun").write_text("")
    (tmp_path / "logs").mkdir()

    def make(
        *,
        resume: bool = False,
        sdk: str = "standin",
        ranks: int = 4,
        parallel: dict[str, Any] | None = None,
        **job: Any,
    ) -> Launch:
        cluster = {"ranks": ranks, "parallel": parallel}
        scenario = Scenario.model_validate(
            {"chaos": 1, "name": "n", "cluster": cluster, "job": {"steps": 12, "protection": ("TTP",), **job}}
        )
        return Launch(
            scenario, tmp_path, tmp_path, tmp_path / "logs", resume, (21000, 21001), tmp_path / "bin" / "python", sdk
        )

    return make


def options(argv: tuple[str, ...]) -> dict[str, str]:
    return {name: value for name, _, value in (argument.partition("=") for argument in argv if "=" in argument)}


def test_the_kind_is_registered_and_its_needs_can_be_probed() -> None:
    kind: JobKind = KIND
    assert registry("jobs").load("rehearsal") is KIND
    assert set(kind.needs) <= set(PROBES)
    assert kind.traits.observable == frozenset(get_args(Phase))


def test_msrun_gets_every_rank_and_leaves_the_others_alive_after_a_death(make: Make, tmp_path: Path) -> None:
    argv = KIND.command(make()).argv
    assert argv[0] == str(tmp_path / "bin" / "msrun")
    given = options(argv)
    assert (given["--worker_num"], given["--local_worker_num"]) == ("4", "4")
    assert (given["--master_addr"], given["--master_port"]) == ("127.0.0.1", "21000")
    assert given["--join"] == "False"
    assert given["--log_dir"] == str(tmp_path / "logs")


def test_the_script_gets_the_scenarios_sizes_and_its_own_arguments_last(make: Make, tmp_path: Path) -> None:
    argv = KIND.command(make(steps_per_epoch=4, checkpoint_interval=5, seed=7, arguments=("--more", "a b"))).argv
    script = next(index for index, argument in enumerate(argv) if argument.endswith("mnist.py"))
    assert options(argv[script:]) == {
        "--device": "CPU",
        "--data": str(tmp_path / "data"),
        "--output": str(tmp_path / "checkpoints"),
        "--steps": "12",
        "--steps-per-epoch": "4",
        "--batch-size": "16",
        "--checkpoint-interval": "5",
        "--seed": "7",
        "--is-recover": "0",
    }
    assert argv[-2:] == ("--more", "a b")
    assert options(KIND.command(make()).argv)["--steps-per-epoch"] == "12"
    assert options(KIND.command(make(resume=True)).argv)["--is-recover"] == "1"


def test_a_layout_with_slices_gets_the_script_that_slices(make: Make) -> None:
    sharded = {"data_parallel": 4, "enable_parallel_optimizer": True, "optimizer_weight_shard_size": 2}
    for parallel, sizes in (({"data_parallel": 2, "model_parallel": 2}, ("2", "1")), (sharded, ("1", "2"))):
        launch = make(parallel=parallel)
        given = options(KIND.command(launch).argv)
        assert (given["--model-parallel"], given["--optimizer-shards"]) == sizes
        assert any(argument.endswith("/sliced.py") for argument in KIND.command(launch).argv)
        assert "slices" in " ".join(part.part for part in KIND.simulated(launch.scenario, "standin"))
    assert "slices" not in " ".join(part.part for part in KIND.simulated(make().scenario, "standin"))


def test_a_script_of_the_scenario_is_told_nothing_about_slices(make: Make, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("")
    argv = KIND.command(make(parallel={"data_parallel": 2, "model_parallel": 2}, script="own.py")).argv
    assert str(tmp_path / "own.py") in argv
    assert not any(argument.startswith("--model-parallel") for argument in argv)


def test_an_own_script_is_found_beside_the_scenario(make: Make, tmp_path: Path) -> None:
    with pytest.raises(JobError, match=rf"job\.script: there is no file {tmp_path / 'own.py'}"):
        KIND.command(make(script="own.py"))
    (tmp_path / "own.py").write_text("")
    assert str(tmp_path / "own.py") in KIND.command(make(script="own.py")).argv


def test_the_protection_becomes_mindspores_switches(make: Make, tmp_path: Path) -> None:
    environment = KIND.command(make(protection=("TTP", "UCE"))).environment
    assert environment["MS_ENABLE_TFT"] == "{TTP:1,UCE:1}"
    assert (environment["MS_TFT_IP"], environment["MS_TFT_PORT"]) == ("127.0.0.1", "21001")
    assert environment["TTP_LOG_PATH"] == str(tmp_path / "logs" / "ttp")
    assert tft_switches(()) == "{}"
    assert tft_switches(("TTP", "ELASTIC")) == "{TTP:1}"


def test_without_protection_no_switch_is_set(make: Make) -> None:
    environment = KIND.command(make(protection=())).environment
    assert not {name for name in environment if name.startswith(("MS_ENABLE", "MS_TFT", "MINDIO"))}


def test_the_stand_in_is_on_the_path_only_where_it_stands_in(make: Make) -> None:
    (sdk,) = KIND.command(make()).path
    assert (sdk / "mindio_ttp" / "framework_ttp" / "__init__.py").is_file()
    assert KIND.command(make(sdk="vendor")).path == ()


def test_what_is_simulated_is_said_with_its_layer(make: Make) -> None:
    parts = {part.part: part.layer for part in KIND.simulated(make().scenario, "standin")}
    assert parts["mindio_ttp, timings fast"] == "SDK"
    assert parts["pictures made from a seed, in the format of MNIST"] == "job"
    assert set(parts.values()) == {"device layer", "SDK", "job"}
    assert {part.layer for part in KIND.simulated(make().scenario, "vendor")} == {"device layer", "job"}


def test_a_python_without_msrun_is_refused_with_advice(make: Make, tmp_path: Path) -> None:
    (tmp_path / "bin" / "msrun").unlink()
    with pytest.raises(JobError, match=r"no msrun beside .*: install MindSpore there"):
        msrun_argv(make(), tmp_path / "x.py", (), master_port=1)


def test_the_data_are_as_many_as_all_ranks_read_in_an_epoch(make: Make, tmp_path: Path) -> None:
    KIND.prepare(make(ranks=2, steps_per_epoch=3))
    images = (tmp_path / "data" / "train-images-idx3-ubyte").read_bytes()
    labels = (tmp_path / "data" / "train-labels-idx1-ubyte").read_bytes()
    assert struct.unpack(">IIII", images[:16]) == (2051, 2 * 3 * 16, 28, 28)
    assert struct.unpack(">II", labels[:8]) == (2049, 2 * 3 * 16)
    assert (len(images), len(labels)) == (16 + 96 * 28 * 28, 8 + 96)
    assert set(labels[8:]) <= set(range(10))


def test_the_same_seed_gives_the_same_data_and_another_one_others(tmp_path: Path) -> None:
    for name, seed in [("a", 1), ("b", 1), ("c", 2)]:
        write_mnist(str(tmp_path / name), images=64, seed=seed)
    a, b, c = ((tmp_path / name / "train-images-idx3-ubyte").read_bytes() for name in "abc")
    assert a == b != c
    pictures = [a[16 + number * 784 : 16 + (number + 1) * 784] for number in range(64)]
    assert len(set(pictures)) == 64


def test_the_fingerprint_is_of_the_script_and_of_the_room(make: Make, tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text("one")
    default = KIND.fingerprint(make().scenario, tmp_path)
    scenario = make(script="own.py").scenario
    one = KIND.fingerprint(scenario, tmp_path)
    own.write_text("two")
    two = KIND.fingerprint(scenario, tmp_path)
    assert len({default["script"], one["script"], two["script"]}) == 3
    assert default["rehearsal"] == one["rehearsal"] == two["rehearsal"]


def test_tre_alone_gets_no_sdk_and_a_watch(make: Make, tmp_path: Path) -> None:
    launch = make(protection=("TRE",), checkpoint_interval=3, tre={"threshold": 5.0})
    command = KIND.command(launch)
    given = options(command.argv)
    assert (given["--norm-threshold"], given["--skip-data"]) == ("5.0", "0")
    assert command.environment["MS_ENABLE_TFT"] == "{TRE:1}"
    assert not {"MINDIO_FOR_MINDSPORE", "MS_TFT_IP", "MS_TFT_PORT"} & command.environment.keys()
    assert command.path == ()
    simulated = KIND.simulated(launch.scenario, "standin")
    assert not any("mindio_ttp" in stand_in.part for stand_in in simulated)
    assert any("global norm" in stand_in.part and stand_in.layer == "job" for stand_in in simulated)


def test_with_a_mechanism_of_the_sdk_beside_it_tre_is_one_more_switch(make: Make) -> None:
    command = KIND.command(make(protection=("TTP", "TRE"), checkpoint_interval=3, tre={"threshold": 5.0}))
    assert command.environment["MS_ENABLE_TFT"] == "{TTP:1,TRE:1}"
    assert command.environment["MINDIO_FOR_MINDSPORE"] == "1"
    assert len(command.path) == 1


def test_the_record_of_an_earlier_run_is_there_before_the_job_starts(make: Make, tmp_path: Path) -> None:
    KIND.prepare(make(protection=("TRE",), checkpoint_interval=3, tre={"threshold": 5.0, "recorded": [8, 9]}))
    record = tmp_path / "checkpoints" / "abnormal_global_norm.json"
    assert read_norm_record(record) == {8: [5.0], 9: [5.0]}
