"""The plugin in the project of a user who tests something else: it collects nothing of chaos, and adds no noise."""

from __future__ import annotations

import pytest

import chaos


@pytest.mark.parametrize("name", ["chaos", "chaos.selftest", "chaos.trends.rank_test"])
def test_nothing_of_chaos_is_collected_by_its_name(pytester: pytest.Pytester, name: str) -> None:
    result = pytester.runpytest("--pyargs", name)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.assert_outcomes()


def test_what_stands_beside_the_name_is_collected(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_mine="def test_it(): pass")
    pytester.runpytest("--pyargs", "chaos", "test_mine.py").assert_outcomes(passed=1)


def test_a_path_is_collected_as_any_other(pytester: pytest.Pytester) -> None:
    (example,) = chaos.__path__
    result = pytester.runpytest("--collect-only", "-q", f"{example}/init/example/plain.yaml")
    assert result.ret == pytest.ExitCode.OK


def test_tests_that_import_chaos_are_reported_as_without_the_plugin(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_mine="import chaos\nimport chaos.scenario.load\n\ndef test_it(): assert chaos.__version__")
    options = ["-W", "error", "-p", "no:cacheprovider", "-q"]
    with_plugin, without = (pytester.runpytest_subprocess(*options, *more) for more in ((), ("-p", "no:chaos")))
    assert with_plugin.ret == without.ret == pytest.ExitCode.OK
    lines = [[line.partition(" in ")[0] for line in result.outlines] for result in (with_plugin, without)]
    assert lines[0] == lines[1]
    assert with_plugin.errlines == without.errlines
