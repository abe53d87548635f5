"""Configurations are read as MindFormers reads them; what cannot be read is refused with file and line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from chaos.jobs.mindformers.configuration import MAX_FILES, read_configuration
from chaos.jobs.mindformers.yaml_file import MAX_VALUES, read_yaml
from chaos.scenario.errors import ScenarioError

SAME = [
    "a: on\nb: 010\nc: 1e-5\nd: 1.e-5\ne: 1:30\nf: ~\ng: 0x1F\nh: 2001-01-01\ni: '1'\nj: !!str 5\nk: .inf\n",
    "base: &base {a: 1, b: 2}\nown:\n  <<: *base\n  b: 3\nlist: [*base, *base]\n",
    "x: &x {a: 1}\ny: &y {a: 2, b: 2}\nz: {<<: [*x, *y], c: 3}\n",
    "a: 1\na: 2\n",
    "1: one\ntrue: yes\n? null\n: nothing\n",
    "a: !\nb: ! 5\nc: ! on\nd: ! ''\ne: ! x\nf: ! [1]\ng: ! {a: 1}\n",
    "a: |\n  text\n  more\nb: >\n  folded\n  text\n",
]


def write(tmp_path: Path, text: str | bytes, name: str = "job.yaml") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refused(path: Path) -> str:
    with pytest.raises(ScenarioError) as caught:
        read_yaml(path)
    return str(caught.value)


@pytest.mark.parametrize("text", SAME)
def test_values_are_those_of_the_safe_loader(tmp_path: Path, text: str) -> None:
    assert read_yaml(write(tmp_path, text)).plain() == yaml.safe_load(text)


def test_every_value_knows_its_line(tmp_path: Path) -> None:
    root = read_yaml(write(tmp_path, "a: 1\nb:\n  c:\n    - d\n    - e: 2\n"))
    assert (root.data["b"].data["c"].line, root.data["b"].data["c"].column) == (3, 3)
    assert root.data["b"].data["c"].data[1].data["e"].line == 5


def test_aliases_that_multiply_are_counted_and_refused(tmp_path: Path) -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    for first, second in zip("abcdefgh", "bcdefghi", strict=True):
        bomb += f"{second}: &{second} [{', '.join([f'*{first}'] * 10)}]\n"
    message = refused(write(tmp_path, bomb))
    assert f"more than {MAX_VALUES} values" in message
    assert ":5:" in message


def test_merge_keys_that_multiply_are_counted_and_refused(tmp_path: Path) -> None:
    bomb = "a: &a {k0: 1, k1: 1, k2: 1, k3: 1, k4: 1, k5: 1, k6: 1, k7: 1, k8: 1, k9: 1}\n"
    for first, second in zip("abcdefgh", "bcdefghi", strict=True):
        bomb += f"{second}: &{second} {{<<: [{', '.join([f'*{first}'] * 10)}]}}\n"
    assert f"more than {MAX_VALUES} values" in refused(write(tmp_path, bomb))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: !!python/object:os.system {}\n", ":1:4: tag 'tag:yaml.org,2002:python/object:os.system' is not read"),
        ("a: !!python/object/apply:os.system ['true']\n", "MindFormers reads with yaml.safe_load"),
        ("a: 1\nb: !mine 2\n", ":2:4: tag '!mine' is not read"),
        ("a: 1\nb: [1\n", ":3:1: expected ',' or ']'"),
        ("a:\n  b: \t1}\n", "a tab cannot indent"),
        ("a: 1\n---\nb: 2\n", ":2:1: a second document begins here"),
        ("", ":1:1: the file is empty"),
        ("- a\n", "a configuration is a mapping of keys to values"),
        ("just text\n", "a configuration is a mapping of keys to values"),
        ("a: *b\n", ":1:4: there is no anchor '&b' before this alias"),
        ("a: &a 1\nb: &a 2\n", ":2:4: there is an anchor '&a' before this one"),
        ("a: &a [*a]\n", ":1:8: alias '*a' is used inside its own anchor"),
        ("a: {<<: 5}\n", "a merge key '<<' takes a mapping"),
        ("? [1, 2]\n: 3\n", "a key cannot be a list or a mapping"),
        ("a: " + "[" * 40 + "]" * 40 + "\n", "nested more than 32 levels deep"),
        ("a: 2001-02-31\n", ":1:4: '2001-02-31' cannot be read as timestamp"),
        ("a: " + "9" * 5000 + "\n", "cannot be read as int"),
        (b"a: 1\nb: \xff\n", ":2:4: byte 0xff is not UTF-8"),
        (b"a: \x00\n", "character U+0000 is not allowed"),
        (b"a: " + b"x" * 10_000_000, "is larger than 256 KiB, the limit for a configuration"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(tmp_path: Path, text: str | bytes, said: str) -> None:
    message = refused(write(tmp_path, text))
    assert said in message
    assert message.startswith(str(tmp_path / "job.yaml"))


def test_what_is_no_plain_file_is_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    assert "is not a file" in refused(tmp_path / "pipe.yaml")
    assert "is not a file" in refused(tmp_path)
    assert "there is no such file" in refused(tmp_path / "absent.yaml")


def test_base_files_are_merged_as_mindformers_merges_them(tmp_path: Path) -> None:
    write(tmp_path, "a: {x: 1, y: 1}\nb: [1]\nc: 1\n", "one.yaml")
    write(tmp_path, "a: {z: 2}\n", "two.yaml")  # of several bases the later replaces whole sections
    write(tmp_path, "base_config: [one.yaml, two.yaml]\na: {y: 3}\nb: [2]\n")
    read = read_configuration("job.yaml", {}, tmp_path / "scenario.yaml")
    assert read.plain() == {"a": {"z": 2, "y": 3}, "b": [2], "c": 1}
    value = read.get("c")
    assert value is not None and value.file.endswith("one.yaml") and value.line == 3


@pytest.mark.parametrize(
    ("base", "said"),
    [
        ("job.yaml", "base_config leads back to"),
        ("absent.yaml", "which is no file"),
        ("5", "base_config must name a file, or a list of files"),
        ("/dev/zero", "which is no file"),
    ],
)
def test_bases_that_cannot_be_used_are_refused_at_the_line_that_names_them(
    tmp_path: Path, base: str, said: str
) -> None:
    write(tmp_path, f"a: 1\nbase_config: {base}\n")
    with pytest.raises(ScenarioError) as caught:
        read_configuration("job.yaml", {}, tmp_path / "scenario.yaml")
    assert said in str(caught.value)
    assert "job.yaml:2:1" in str(caught.value)


def test_files_that_name_each_other_many_times_are_read_once_each(tmp_path: Path) -> None:
    for number in range(24):  # 2**24 ways lead to the last one
        write(tmp_path, f"base_config: [{number + 1}.yaml, {number + 1}.yaml]\nk{number}: 1\n", f"{number}.yaml")
    write(tmp_path, "last: 1\n", "24.yaml")
    read = read_configuration("0.yaml", {}, tmp_path / "scenario.yaml")
    assert read.plain() == {"last": 1, **{f"k{number}": 1 for number in range(24)}}


def test_files_and_their_names_are_counted_in_all(tmp_path: Path) -> None:
    for number in range(MAX_FILES):
        write(tmp_path, "a: 1\n", f"{number}.yaml")
    half = MAX_FILES // 2
    write(tmp_path, f"base_config: [{', '.join(f'{number}.yaml' for number in range(half))}]\n", "one.yaml")
    write(tmp_path, f"base_config: [{', '.join(f'{number + half}.yaml' for number in range(half))}]\n", "two.yaml")
    write(tmp_path, "base_config: [one.yaml, two.yaml]\n")
    with pytest.raises(
        ScenarioError,
        match=r"two\.yaml:1:\d+: more than 32 files, or 1024 Ki characters, in all are named by base_config",
    ):
        read_configuration("job.yaml", {}, tmp_path / "scenario.yaml")
    write(tmp_path, f"base_config: [{'0.yaml, ' * (MAX_FILES + 1)}]\n")
    with pytest.raises(ScenarioError, match="base_config names more than 32 files"):
        read_configuration("job.yaml", {}, tmp_path / "scenario.yaml")


def test_the_text_of_all_files_together_is_bounded(tmp_path: Path) -> None:
    for number in range(6):  # few values, so that they are read quickly
        write(tmp_path, f"base_config: {number + 1}.yaml\na: {'x' * 250_000}\n", f"{number}.yaml")
    with pytest.raises(ScenarioError, match=r"/4\.yaml:1:1: more than 32 files, or 1024 Ki characters, in all"):
        write(tmp_path, "a: 1\n", "6.yaml")
        read_configuration("0.yaml", {}, tmp_path / "scenario.yaml")


def test_a_file_is_parsed_once_for_all_cells_and_anew_when_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[str] = []

    def load(text: str) -> yaml.SafeLoader:
        loads.append(text)
        return yaml.SafeLoader(text)

    monkeypatch.setattr("chaos.jobs.mindformers.yaml_file._Loader", load)
    write(tmp_path, f"base_config: base.yaml\nplace: {tmp_path}\n")
    write(tmp_path, f"a: 1\nbelow: {tmp_path}\n", "base.yaml")
    for number in range(5):
        read = read_configuration("job.yaml", {"a": number}, tmp_path / "scenario.yaml")
        assert read.plain() == {"a": number, "below": str(tmp_path), "place": str(tmp_path)}
    assert len(loads) == 2
    write(tmp_path, f"a: 2\nbelow: {tmp_path}\n", "base.yaml")
    assert read_configuration("job.yaml", {}, tmp_path / "scenario.yaml").plain()["a"] == 2
    write(tmp_path, f"a: [\nbelow: {tmp_path}\n", "base.yaml")
    for _ in range(5):
        with pytest.raises(ScenarioError, match=r"base\.yaml:3:1"):
            read_configuration("job.yaml", {}, tmp_path / "scenario.yaml")
    assert len(loads) == 4  # what cannot be read is not tried again either


def test_a_file_with_an_unusual_name_is_read_and_shown_escaped(tmp_path: Path) -> None:
    write(tmp_path, "base_config: b\u00a0c.yaml\n", "a\u00a0b.yaml")
    write(tmp_path, "a: 1\n", "b\u00a0c.yaml")
    read = read_configuration("a\u00a0b.yaml", {}, tmp_path / "scenario.yaml")
    value = read.get("a")
    assert value is not None and value.data == 1
    assert value.file.endswith("b\\xa0c.yaml")


def test_overrides_are_merged_and_the_users_file_stays_as_it_is(tmp_path: Path) -> None:
    text = "a: {x: 1, y: 1e-5}\nb: [1, 2]\n"
    path = write(tmp_path, text)
    read = read_configuration("job.yaml", {"a.x": 2, "c": {"d": [True, None]}, "b": [3]}, tmp_path / "scenario.yaml")
    assert yaml.safe_load(yaml.safe_dump(read.plain())) == {
        "a": {"x": 2, "y": "1e-5"},
        "b": [3],
        "c": {"d": [True, None]},
    }
    assert path.read_text() == text


def test_an_empty_mapping_changes_no_list(tmp_path: Path) -> None:
    write(tmp_path, "a: [1]\n")
    assert read_configuration("job.yaml", {"a": {}}, tmp_path / "scenario.yaml").plain() == {"a": [1]}


def test_an_override_inside_a_list_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "callbacks:\n  - type: A\n")
    with pytest.raises(ScenarioError) as caught:
        read_configuration("job.yaml", {"callbacks.0.type": "B"}, tmp_path / "scenario.yaml")
    assert "'callbacks' is a mapping here, but a list in " in str(caught.value)


def test_a_configuration_may_lie_anywhere(tmp_path: Path) -> None:
    (tmp_path / "scenarios").mkdir()
    write(tmp_path, "a: 1\n")
    for config in ("../job.yaml", str(tmp_path / "job.yaml")):
        assert read_configuration(config, {}, tmp_path / "scenarios" / "s.yaml").file == tmp_path / "job.yaml"
