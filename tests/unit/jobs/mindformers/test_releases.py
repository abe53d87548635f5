"""What depends on the release of MindFormers: the one that a checkout has, and the keys that it knows."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from chaos.jobs.mindformers.template import checked_keys
from chaos.jobs.mindformers.version import Release, release_of

if TYPE_CHECKING:
    from tests.unit.jobs.mindformers.conftest import Room

TEMPLATE = '''\
class Config:
    _raise_error_for_unexpected_key = True


class ParallelConfig(Config):
    """sizes"""
    data_parallel = 1
    model_parallel: int = 1
    pipeline_stage = 1
    _name = "parallel_config"

    def method(self):
        within = 1


class SwapConfig(Config):
    _raise_error_for_unexpected_key = False
    _name = "swap_config"


class RecomputeConfig(SpecConfig):
    _name = "recompute_config"


class MoEConfig(Config):
    expert_num = 1
    _name = "moe_config"


class ContextConfig(Config):
    mode = 0
    _name = "context"
'''


@pytest.mark.parametrize(
    ("text", "version", "layout"),
    [
        ('__version__ = "2.1.0"\n', (2, 1), "section"),
        ('__version__ = "1.8.0"\n', (1, 8), "top"),
        ("__version__ = '1.4.0.beta1'\n", (1, 4), "never"),
        ('__version__ = "r1.3.0"\n', (1, 3), "never"),
        ("# Apache License, Version 2.0\nimport nothing\n", (1, 0), "never"),  # 1.0 and older say no version
        ('\ufeff__version__: str = "1.8.0"\n', (1, 8), "top"),
        ('__version__: "str" = "1.8.0"\n__version__ = "1.7.0"\n', (1, 7), "callback"),
        ('__version__ = "dev"\n', None, "section"),  # 1.4.0-beta1
        ("from .version import __version__\n", None, "section"),
        ("from .version import *\n", None, "section"),
        ('__version__ = ".".join(NUMBERS)\n', None, "section"),
        (f'__version__ = "{"9" * 5000}.1"\n', None, "section"),
        (f'__version__ = "1.{"9" * 5000}"\n', None, "section"),
        (f'__version__ = "1.8.0"\n{"#" * 2**20}', None, "section"),
        (None, None, "section"),  # no MindFormers at all: the newest is assumed
    ],
)
def test_the_version_is_that_of_the_checkout(
    tmp_path: Path, text: str | None, version: tuple[int, int] | None, layout: str
) -> None:
    (tmp_path / "mindformers").mkdir()
    if text is not None:
        (tmp_path / "mindformers" / "__init__.py").write_text(text)
    found = release_of(tmp_path)
    assert (found.version, found.layout) == (version, layout)


def test_sources_between_two_releases_are_told_by_what_they_read(tmp_path: Path) -> None:
    package = tmp_path / "mindformers"
    for name in ("tools/register", "trainer"):
        (package / name).mkdir(parents=True)
    (package / "__init__.py").write_text('__version__ = "1.8.0"\n')
    (package / "tools/register/template.py").write_text("class A:\n    use_legacy_format = True\n")
    assert release_of(tmp_path).layout == "top"
    (package / "trainer/utils.py").write_text("def convert_checkpoint_config(config):\n    pass\n")
    assert release_of(tmp_path).layout == "section"


def test_a_version_without_a_number_has_no_mechanism(room: Room) -> None:
    old = "type: CheckpointMointor"
    assert "MindFormers 1.0 does nothing for TTP" in room.change("type: CheckpointMonitor", old).checkout("").refused()
    room.change_scenario("[TTP]", "[]")
    plan = room.plan()
    assert plan.training.checkpoint_interval == 4
    assert plan.explanation.configured["checkpoint prefix"] == "job.yaml:20: prefix: tiny"


@pytest.mark.parametrize(
    ("version", "name", "saves"),
    [
        ("1.1", "CheckpointMointor", True),
        ("1.1", "CheckpointMonitor", True),  # that of the tag v1.2.0, and nothing here says that it is not
        ("", "CheckpointMonitor", False),
        ("1.2.0", "CheckpointMonitor", True),
        ("1.2.0", "CheckpointMointor", False),
    ],
)
def test_the_callback_that_saves_has_the_name_of_its_version(room: Room, version: str, name: str, saves: bool) -> None:
    room.change("type: CheckpointMonitor", f"type: {name}").change_scenario("[TTP]", "[]").checkout(version)
    assert ("checkpoint prefix" in room.plan().explanation.configured) == saves


@pytest.mark.parametrize(
    ("version", "name", "taken"),
    [
        ("1.1", "CheckpointMonitor", (1, 2)),  # as the tag v1.2.0
        ("1.1", "CheckpointMointor", (1, 1)),
        ("dev", "CheckpointMonitor", None),  # as the tag v1.4.0-beta1
        ("dev", "CheckpointMointor", None),
        ("", "CheckpointMonitor", None),
        ("", "CheckpointMointor", (1, 0)),
    ],
)
@pytest.mark.parametrize("other", ["CheckpointMonitor", "CheckpointMointor"])
def test_the_callback_that_saves_is_looked_for_in_the_sources(
    room: Room, version: str, name: str, taken: tuple[int, int] | None, other: str
) -> None:
    room.change("type: CheckpointMonitor", f"type: {other}").change_scenario("[TTP]", "[]").checkout(version)
    callbacks = room.path / "checkout/mindformers/core/callback/callback.py"
    callbacks.parent.mkdir(parents=True)
    callbacks.write_text(f"class Other:\n    pass\n\n\nclass {name}(ModelCheckpoint):\n    pass\n")
    assert release_of(room.path / "checkout").version == taken
    assert ("checkpoint prefix" in room.plan().explanation.configured) == (other == name)


def test_sources_without_a_number_and_a_template_know_one_layout(tmp_path: Path) -> None:
    (tmp_path / "mindformers/trainer").mkdir(parents=True)
    (tmp_path / "mindformers/__init__.py").write_text('__version__ = "dev"\n')
    (tmp_path / "mindformers/trainer/utils.py").write_text("pass\n")  # as in the tag v1.4.0-beta1
    assert release_of(tmp_path) == Release(None, "never")
    (tmp_path / "mindformers/trainer/utils.py").write_text("def convert_checkpoint_config(config):\n    pass\n")
    assert release_of(tmp_path).layout == "section"


@pytest.mark.parametrize("name", ["__init__.py", "tools/register/template.py", "core/callback/callback.py"])
def test_what_is_no_plain_file_tells_nothing(tmp_path: Path, name: str) -> None:
    path = tmp_path / "mindformers" / name
    path.parent.mkdir(parents=True)
    os.mkfifo(path)

    def write() -> None:
        with suppress(BrokenPipeError):
            path.write_text(f'__version__ = "1.8.0"\nclass CheckpointMointor:\n    pass\n{TEMPLATE}')

    writer = Thread(target=write, daemon=True)  # so that whoever reads it does not wait
    writer.start()
    assert release_of(tmp_path) == Release()
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # nobody has read it, so it waits for that
    writer.join(30)
    os.close(reader)
    assert not writer.is_alive()


def test_sources_may_be_links(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.py").write_text('__version__ = "1.7.0"\n')
    (tmp_path / "mindformers").mkdir()
    (tmp_path / "mindformers/__init__.py").symlink_to(tmp_path / "elsewhere.py")
    assert release_of(tmp_path).version == (1, 7)


@pytest.mark.parametrize("more", ["\n" * 60_000, "f'{x}' " * 60_000, 'f"""' + "{'a'}" * 100_000 + '"""'])
def test_a_template_that_is_longer_than_any_is_not_parsed(tmp_path: Path, more: str) -> None:
    path = tmp_path / "mindformers/tools/register/template.py"
    path.parent.mkdir(parents=True)
    text = f"\ufeff{TEMPLATE}a = {more}1\n" if more[0] != "\n" else f"\ufeff{TEMPLATE}{more}"
    path.write_text(text, "utf-8")
    assert bool(release_of(tmp_path).checked) == (len(text) < 2**16)
    assert bool(checked_keys(text[1:])) == (len(text) < 2**16)


def test_keys_are_checked_where_the_template_says_so() -> None:
    found = checked_keys(TEMPLATE)
    assert found["parallel_config"] == {"data_parallel", "model_parallel", "pipeline_stage"}
    assert set(found) == {"parallel_config", "moe_config"}


@pytest.mark.parametrize("text", ["class (", "\0", "", "class ParallelConfig(Config):\n    _name = name\n"])
def test_a_template_of_another_form_checks_nothing(text: str) -> None:
    assert not checked_keys(text)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "  model_parallel: 1\n",
            "  tensor_parallel: 1\n",
            "job.yaml:15:3: MindFormers ends with 'The config 'parallel_config' gets an unexpected key: tensor_par",
        ),
        ("  model_parallel: 1\n", "  5: 1\n", "gets an unexpected key: 5'"),
        ("run_mode", "moe_config: {experts: 2}\nrun_mode", "job.yaml:4:14: MindFormers ends with 'The config 'moe_"),
        ("run_mode", "moe_config: {expert_num: 2}\nrun_mode", ""),
        ("run_mode", "use_legacy: False\nmoe_config: {experts: 2}\nrun_mode", ""),  # not read then
        ("run_mode", "swap_config: {any: 2}\nrun_mode", ""),
        ("run_mode", "recompute_config: {any: 2}\nrun_mode", ""),
        ("context:", "context:\n  any: 2", ""),
    ],
)
def test_a_key_that_this_version_does_not_know_is_refused_at_its_line(
    room: Room, old: str, new: str, told: str
) -> None:
    room.checkout("2.1.0", TEMPLATE).change(old, new)
    if told:
        assert told in room.refused()
    else:
        room.plan()


def test_a_section_of_2_1_ends_the_job_before(room: Room) -> None:
    template = "class M(Config):\n    monitor_on = False\n    _name = 'monitor_config'\n"
    room.configuration += "monitor_config:\n  monitor_on: True\n  health_checkpoint: {}\n"
    message = room.checkout("1.8.0", template).refused()
    assert message.startswith(
        "job.yaml:26:3: MindFormers ends with 'The config 'monitor_config' gets an unexpected key"
    )
    assert "or MindFormers 2.1" in message


@pytest.mark.parametrize(
    ("version", "old", "new", "place"),
    [
        ("2.1.0", "    prefix", "    keep_checkpoint_max: 0\n    prefix", "job.yaml:20:5: keep_checkpoint_max is 0: "),
        ("2.1.0", "run_mode", "checkpoint: {save_max: 0}\nrun_mode", "job.yaml:4:14: save_max is 0: "),
        ("2.1.0", "    prefix", "    keep_checkpoint_max: 1\n    prefix", ""),
        ("1.8.0", "    prefix", "    keep_checkpoint_max: 0\n    prefix", ""),  # MindSpore then keeps one
        ("1.8.0", "run_mode", "checkpoint: {save_max: 0}\nrun_mode", ""),  # passed over
    ],
)
def test_from_2_1_on_one_checkpoint_is_kept_at_least(room: Room, version: str, old: str, new: str, place: str) -> None:
    room.checkout(version).change(old, new)
    if place:
        assert room.refused().startswith(f"{place}MindFormers ends with 'save_max in checkpoint_config should be at")
    else:
        room.plan()


@pytest.mark.parametrize(
    ("version", "section", "callback", "refused"),
    [
        ("2.1.0", "good", "a_rank_b", True),
        ("2.1.0", "my_rank_x", "good", False),  # only the callback's is looked at
        ("1.6.0", "good", "a_rank_b", True),
        ("1.5.0", "good", "a_rank_b", False),
    ],
)
def test_the_prefix_that_mindformers_looks_at_has_no_rank_in_it(
    room: Room, version: str, section: str, callback: str, refused: bool
) -> None:
    room.checkout(version).change("prefix: tiny", f"prefix: {callback}")
    room.change("run_mode", f"checkpoint: {{prefix: {section}}}\nrun_mode")
    if refused:
        assert room.refused().startswith("job.yaml:21:5: MindFormers ends with 'The prefix for saving checkpoint is")
    else:
        room.plan()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "run_mode",
            "checkpoint: {load_path: ckpt, no_load_optim: False}\nrun_mode",
            "job.yaml:4:31: the job resumes from the checkpoint 'ckpt'",
        ),
        (
            "run_mode",
            "checkpoint: {no_save_optim: True}\nrun_mode",
            "job.yaml:4:14: no_save_optim leaves the optimizer's",
        ),
        ("run_mode", "checkpoint: {save_path: ckpt}\nrun_mode", "job.yaml:4:14: checkpoints go to 'ckpt'"),
    ],
)
def test_what_the_section_forbids_counts_where_the_section_does(room: Room, old: str, new: str, words: str) -> None:
    room.change(old, new)
    assert room.checkout("2.1.0").refused().startswith(words)
    room.checkout("1.8.0").plan()


def test_in_the_new_layout_of_1_8_the_older_keys_say_whether_a_job_goes_on(room: Room) -> None:
    room.change("run_mode", "use_legacy_format: False\nload_checkpoint: ckpt\nresume_training: True\nrun_mode")
    assert room.checkout("1.8.0").refused().startswith("job.yaml:6:1: the job resumes from the checkpoint 'ckpt'")
    room.change("resume_training: True", "resume_training: False").plan()
