"""The first hour of a newcomer, newcomers_hour.sh: the wheel alone, another user than root, a locale without UTF-8."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.jobs.built_wheel import bare_environment, build_wheel
from tests.kit.jobs.newcomer import LOCALES, Newcomer, make_gbk, newcomer

pytestmark = pytest.mark.processes

HOUR = Path(__file__).with_name("newcomers_hour.sh")


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that every user can reach, unlike those of pytest."""
    made = Path(tempfile.mkdtemp(prefix="newcomer-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def user(place: Path) -> Newcomer:
    return newcomer(place)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("hour"))


@pytest.mark.parametrize(
    "locale",
    [
        "ascii",
        pytest.param("gbk", marks=pytest.mark.nightly),
        pytest.param("streams", marks=pytest.mark.nightly),
    ],
)
def test_every_promise_of_the_first_hour_is_kept(locale: str, place: Path, user: Newcomer, wheel: Path) -> None:
    for name in ("home", "tmp", "我的 first hour", "locales"):
        (place / name).mkdir()
    shutil.copy(wheel, place)
    shutil.copy(HOUR, place)
    programs = bare_environment(place / "environment", user.python, "pip")
    user.owns(place)
    environment = {
        **{name: value for name, value in os.environ.items() if name == "LD_LIBRARY_PATH"},
        **(make_gbk(place / "locales") if locale == "gbk" else {}),
        **LOCALES[locale],
        "PATH": f"{programs}:/usr/bin:/bin",
        "HOME": str(place / "home"),
        "TMPDIR": str(place / "tmp"),
        "PIP_NO_DEPS": "1",
        "PIP_NO_INDEX": "1",
    }

    command = ["sh", str(place / HOUR.name), str(place / wheel.name)]
    ended = user.run(command, place / "我的 first hour", environment)

    assert ended.returncode == 0, ended.stdout.decode(errors="replace")
    assert b"== Every promise was kept ==" in ended.stdout
    assert not any((place / "tmp").iterdir()), "nothing is left in the directory for temporary files"
