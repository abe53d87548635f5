"""Launch lines of shell scripts are read as a shell would, and nothing of them is executed."""

from __future__ import annotations

from pathlib import Path

from chaos.init.launch_lines import LaunchLine, launch_lines, read_launch_lines


def lines(text: str) -> list[LaunchLine]:
    return list(read_launch_lines(text, "run.sh", Path()))


def test_words_variables_quotes_and_continued_lines_are_read() -> None:
    (line,) = lines(
        "#!/bin/bash\n"
        "# msrun --worker_num=99 old.py\n"
        "N=${1:-4}\nexport MS_DEV=1 HOME=/nowhere\n"
        "cd src; OMP_NUM_THREADS=2 msrun --worker_num=${N} --local_worker_num 4 \\\n"
        '  train.py --a "x y" --epochs=$EPOCHS $@ > log.txt 2>&1 &\n'
    )
    assert (line.where, line.launcher, line.script, line.ranks) == ("run.sh:5", "msrun", "train.py", 4)
    assert line.arguments == ("--a", "x y")
    assert line.unknown == ("--epochs=$EPOCHS", "$@")
    assert line.environment == {"MS_DEV": "1", "OMP_NUM_THREADS": "2"}


def test_other_launchers_are_known() -> None:
    found = lines(
        "python3 -m torch.distributed.run --nproc_per_node=8 --nnodes 2 a/b.py --x && echo done\n"
        "torchrun --nproc-per-node 4 c.py\n"
        "mpirun --allow-run-as-root -n 8 python t.py --d=1;wait\n"
    )
    assert [(line.launcher, line.script, line.ranks) for line in found] == [
        ("torchrun", "a/b.py", 16),
        ("torchrun", "c.py", 4),
        ("mpirun", "t.py", 8),
    ]
    assert found[2].arguments == ("--d=1",)


def test_several_nodes_are_told_from_the_workers_of_each() -> None:
    (line,) = lines("msrun --worker_num=16 --local_worker_num=8 train.py\n")
    assert (line.ranks, line.nodes) == (16, 2)


def test_a_file_without_an_end_of_its_quotes_gives_nothing() -> None:
    assert lines('msrun --worker_num=2 train.py "\n') == []


def test_scripts_are_found_beside_and_from_the_place_of_the_shell_script(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "run.sh").write_text("msrun --worker_num=2 ../train.py\n")
    (line,) = launch_lines(tmp_path)
    assert line.where == "scripts/run.sh:1"
    assert line.path(tmp_path) == tmp_path / "train.py"


def test_a_shell_script_above_counts_only_for_a_script_of_the_directory(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "train.py").write_text("")
    (tmp_path / "other.py").write_text("")
    (tmp_path / "run.sh").write_text("msrun --worker_num=2 other.py\nmsrun --worker_num=3 own/train.py\n")
    assert [line.ranks for line in launch_lines(own)] == [3]
