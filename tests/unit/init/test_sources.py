"""Values, conditions, saves and resumes are read from the text of a script alone."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from chaos.base.refusal import Refused
from chaos.init.draft import draft
from chaos.init.entries import Wishes
from chaos.init.survey import Survey, survey
from chaos.jobs.mindspore import KIND


def read(tmp_path: Path, text: str, *arguments: str, **modules: str) -> Survey:
    script = tmp_path / "train.py"
    script.write_text("import mindspore as ms\n" + dedent(text))
    for name, content in modules.items():
        (tmp_path / f"{name}.py").write_text(dedent(content))
    return survey(tmp_path, script, None, arguments or None)


def saves(found: Survey) -> list[tuple[object, str, str]]:
    return [(save.interval and save.interval.number, save.place, save.rank_0) for save in found.saves]


def test_nothing_of_the_script_is_executed(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    read(tmp_path, f"open({str(mark)!r}, 'w').close()\nimport helper\n", helper=f"open({str(mark)!r}, 'w')")
    assert not mark.exists()


@pytest.mark.parametrize(
    ("body", "made"),
    [
        ("    pass", 'Keep("net", "out", CheckpointConfig(save_checkpoint_steps=7))'),
        (
            "    def __init__(self, *args, **kwargs):\n        super().__init__(*args, **kwargs)",
            'Keep("net", directory="out", config=CheckpointConfig(save_checkpoint_steps=7))',
        ),
        (
            "    def __init__(self, folder, every):\n"
            '        super().__init__("net", folder, CheckpointConfig(save_checkpoint_steps=every))',
            'Saver("out", every=7)',
        ),
    ],
)
def test_a_class_that_inherits_from_model_checkpoint_saves(tmp_path: Path, body: str, made: str) -> None:
    head = "from mindspore.train import CheckpointConfig, ModelCheckpoint as Base\n"
    train = f"from callbacks import Saver, Saver as Keep\nif rank == 0:\n    callbacks.append({made})\n"
    found = read(tmp_path, train, callbacks=f"{head}class Base2(Base):\n    pass\nclass Saver(Base2):\n{body}\n")
    assert [(save.interval and save.interval.number, save.place) for save in found.saves] == [(7, "out")]
    assert found.saves[0].rank_0 == "train.py:3"


def test_a_model_checkpoint_under_another_name_saves(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "from mindspore.train import CheckpointConfig, ModelCheckpoint as Keeper\n"
        'saver = Keeper("net", "out", CheckpointConfig(save_checkpoint_steps=4))\n',
    )
    assert saves(found) == [(4, "out", "")]


def test_the_interval_of_a_model_checkpoint_whose_arguments_are_unknown_is_not_guessed(tmp_path: Path) -> None:
    found = read(tmp_path, "from mindspore.train import ModelCheckpoint\ncb = ModelCheckpoint('net', **options)\n")
    assert [save.interval for save in found.saves] == [None]


def test_an_interval_is_followed_through_a_callback_of_another_module(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        """
        from callbacks import Saver
        EVERY = 2 * 25
        def main():
            cb = [Saver("out", every=EVERY)]
            model.train(2, data, callbacks=cb)
        main()
        """,
        callbacks="""
        class Saver(Callback):
            def __init__(self, folder, every):
                self.folder, self.n = folder, every
                self.every = every
            def step_end(self, context):
                if context.step % self.every:
                    return
                ms.save_checkpoint(net, "out/net.ckpt")
        """,
    )
    assert saves(found) == [(50, "out/net.ckpt", "")]
    assert found.saves[0].where == "callbacks.py:9"


@pytest.mark.parametrize(
    "guard",
    [
        "if rank == 0:\n    save()",
        "if not rank:\n    save()",
        "if 0 == get_rank() and step % 5 == 0:\n    save()",
        "if is_main_process:\n    save()",
        "if rank != 0:\n    pass\nelse:\n    save()",
        "callbacks += [save()] if rank_id == 0 else []",
    ],
)
def test_a_save_of_rank_0_alone_is_seen(tmp_path: Path, guard: str) -> None:
    found = read(tmp_path, "def save():\n    ms.save_checkpoint(net, 'a.ckpt')\n" + guard)
    assert len(found.saves) == 1 and found.saves[0].rank_0


@pytest.mark.parametrize("guard", ["if rank == 1:\n    save()", "if rank:\n    save()", "if step == 0:\n    save()"])
def test_a_save_of_other_ranks_is_not_taken_for_one_of_rank_0(tmp_path: Path, guard: str) -> None:
    found = read(tmp_path, "def save():\n    ms.save_checkpoint(net, 'a.ckpt')\n" + guard)
    assert [save.rank_0 for save in found.saves] == [""]


@pytest.mark.parametrize(("guard", "savers"), [("True", "every rank"), ("rank in chosen", None), ("rank < 4", None)])
def test_every_rank_is_said_to_save_only_where_no_test_looks_at_the_rank(
    tmp_path: Path, guard: str, savers: str | None
) -> None:
    save = f"if step % 2 == 0 and {guard}:\n    ms.save_checkpoint(net, f'ckpt/rank_{{rank}}.ckpt')\n"
    drafted = draft(read(tmp_path, save), Wishes(fault="kill"), KIND, here=(), ask=None)
    assert (drafted.savers and drafted.savers.value) == savers


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("for step in range(done + 1, N + 1):\n    train_step()", 40),
        ("for step in range(done, N):\n    train_step()", 40),
        ("for step in range(1, N):\n    train_step()", 39),
        ("while step < N:\n    train_step()", 40),
        ("for epoch in range(3):\n    for i in range(N):\n        train_step()", 120),
        ("for batch in data:\n    train_step()", None),
    ],
)
def test_the_steps_of_a_loop_are_counted_from_its_range(tmp_path: Path, text: str, steps: int | None) -> None:
    found = read(tmp_path, f"N = 40\ntrain_step = ms.value_and_grad(f)\n{text}")
    assert found.loop.form == "own"
    assert (found.loop.steps and found.loop.steps.number) == steps


def test_the_launch_line_counts_more_than_a_default(tmp_path: Path) -> None:
    text = "parser.add_argument('--max-steps', type=int, default=10)\nmodel.train(1, data, callbacks=[])"
    assert (default := read(tmp_path, text).loop.steps) is not None and default.number == 10
    for given in (["--max-steps=30"], ["--max-steps", "30"]):
        steps = read(tmp_path, text, *given).loop.steps
        assert steps is not None and (steps.number, steps.origin) == (30, "--argument, --max-steps")


@pytest.mark.parametrize("name", ["--warmup-steps", "--save-steps", "--log_steps", "--accumulation-steps"])
def test_steps_of_something_else_are_not_those_of_the_training(tmp_path: Path, name: str) -> None:
    text = f"parser.add_argument({name!r}, default=10)\nmodel.train(1, data, callbacks=[])"
    assert read(tmp_path, text).loop.steps is None


@pytest.mark.parametrize(
    ("option", "use", "word"),
    [
        ("'--resume', action='store_true'", "if args.resume:", "--resume"),
        ("'--resume', type=bool, default=False", "if args.resume:", "--resume=True"),
        ("'--is-recover', type=int, default=0", "if args.is_recover:", "--is-recover=1"),
        ("'--load', dest='path', choices=['none', 'latest']", "if args.path:", None),
        ("'--ckpt', default=''", "if args.ckpt:", "--ckpt=out/net.ckpt"),
        ("'--ckpt-dir', default=''", "if True:", None),
        ("'--resume-dir', default=''", "if args.resume_dir:", "--resume-dir=out"),
        ("'--restore', nargs='?', const='x'", "if args.restore:", "--restore"),
    ],
)
def test_the_argument_of_a_resume_is_found_with_its_value(
    tmp_path: Path, option: str, use: str, word: str | None
) -> None:
    found = read(
        tmp_path,
        f"parser.add_argument({option})\n{use}\n    ms.load_checkpoint(args.other)\n"
        "if step % 2 == 0:\n    ms.save_checkpoint(net, 'out/net.ckpt')\n",
    )
    assert (found.resumes[0].text if found.resumes else None) == word


def test_what_makes_a_loop_hard_to_count_is_said(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        """
        gen, dis = nn.Adam(a), nn.Adam(b)
        scaler = DynamicLossScaler(2)
        accum_steps = 2
        grad_fn = ms.value_and_grad(f)
        for x in data:
            grad_fn(x)
            gather = ops.AllGather()
        """,
    )
    said = " ".join(found.loop.why_not)
    assert "accumulated" in said and "loss scale" in said
    assert "2 optimizers" in found.loop.several_optimizers
    assert "handed on behind the update" in said


def test_noise_is_seen_and_a_seed_too(tmp_path: Path) -> None:
    noisy = read(tmp_path, "d = nn.Dropout(p=0.5)\nx = data.batch(shuffle=True)\n")
    assert "Dropout" in " ".join(noisy.noise)
    assert "no set_seed" in " ".join(noisy.unseeded) and "shuffle=True without a seed" in " ".join(noisy.unseeded)
    quiet = read(tmp_path, "ms.set_seed(1)\nd = nn.Dropout(p=0)\nx = data.batch(shuffle=True)\n")
    assert (quiet.noise, quiet.unseeded) == ((), ())


def test_parallel_sizes_are_read(tmp_path: Path) -> None:
    layout = read(
        tmp_path,
        "ms.set_auto_parallel_context(pipeline_stages=2, enable_parallel_optimizer=True,"
        " parallel_optimizer_config={'optimizer_weight_shard_size': 4})",
    ).layout
    assert layout.stages is not None and layout.stages.number == 2
    assert layout.sharded is not None and layout.shard_size is not None and layout.shard_size.number == 4


def test_relative_files_of_the_directory_are_named(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text("")
    found = read(tmp_path, "x = open('data/a.txt')\nparser.add_argument('--data', default='data/')\ny = 'gone/b.txt'\n")
    assert [(path.text, path.option) for path in found.paths] == [("data/a.txt", ""), ("data/", "--data")]


@pytest.mark.parametrize("text", ["def broken(:\n", "x = '\x00'\n", "(" * 3000])
def test_a_script_that_cannot_be_parsed_is_refused_with_its_reason(tmp_path: Path, text: str) -> None:
    with pytest.raises(Refused, match=r"train\.py"):
        read(tmp_path, text)


def test_a_module_that_cannot_be_parsed_is_left_out_and_named(tmp_path: Path) -> None:
    found = read(tmp_path, "import helper\n", helper="def broken(:\n")
    assert "helper.py:1" in found.left_out[0]
