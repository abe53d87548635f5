"""A launcher is known by its command line, whatever its name is and however Python was called."""

from __future__ import annotations

import pytest

from chaos.machine.job.programs import is_torchrun, program_of, starts_ranks


@pytest.mark.parametrize(
    "line",
    [
        "/venv/bin/python3.11 /venv/bin/torchrun --nproc-per-node 2 train.py",
        "python -m torch.distributed.run --standalone train.py",
        "python -u -X dev -m torch.distributed.launch train.py",
        "python -W ignore -u /venv/bin/torchrun train.py",
        "python /venv/bin/ft_launcher train.py",
        "timeout 60 torchrun train.py",
    ],
)
def test_torchrun_has_several_names(line: str) -> None:
    assert is_torchrun(tuple(line.split())) and starts_ranks(tuple(line.split()))


@pytest.mark.parametrize("line", ["python /venv/bin/msrun train.py", "python -I /x/plainrun.py --ranks 2"])
def test_other_launchers_are_no_torchrun(line: str) -> None:
    assert starts_ranks(tuple(line.split())) and not is_torchrun(tuple(line.split()))


@pytest.mark.parametrize(
    "line",
    [
        "python train.py --launched-by torchrun",
        "python train.py -m torch.distributed.run",
        "python -m torch.distributed.runner",
        "python -c import torch.distributed.run",
        "bash -c torchrun\xa0train.py",
        "",
    ],
)
def test_what_only_mentions_a_launcher_is_none(line: str) -> None:
    assert not starts_ranks(tuple(line.split(" ")) if line else ())


def test_the_program_of_a_python_is_its_script_or_module_or_code() -> None:
    assert program_of(("python", "-X", "dev", "-u", "/a/train.py", "x.py")) == "train.py"
    assert program_of(("python3", "-m", "train", "--x")) == "-m train"
    assert program_of(("python3", "-c", "pass")) == "-c pass"
    assert program_of(("python3",)) == "python"
    assert program_of(("bash", "train.py")) is None
