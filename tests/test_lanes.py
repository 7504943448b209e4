"""The pytest plugins of this test suite: lanes, time limits, and skipped tests."""

from __future__ import annotations

import sys

import pytest

from tests.support import budget, light

pytest_plugins = ["pytester"]

PLUGINS = ("-p", "tests.support.budget", "-p", "tests.support.lanes", "-p", "no:cacheprovider")


@pytest.fixture(autouse=True)
def _idle_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "is_overloaded", lambda: False)


def run(pytester: pytest.Pytester, *words: str) -> pytest.RunResult:
    """Run the tests of the folder with the plugins."""
    pytester.makeini("[pytest]\nseconds_a_test = 0.2\naddopts = --strict-markers\nmarkers = quick")
    return pytester.runpytest_inprocess(*PLUGINS, *words)


BUSY = """
import time, pytest

def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
"""


def test_slow_test_fails(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(f"{BUSY}\ndef test_slow(): work(0.4)\ndef test_quick(): work(0.01)")
    result = run(pytester)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*must take at most 0.2 s, got * s (* s of processors)*"])


def test_test_that_only_waits_passes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(f"{BUSY}\ndef test_waiting(): time.sleep(0.4)")
    run(pytester).assert_outcomes(passed=1)


def test_slow_test_passes_on_an_overloaded_machine(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "is_overloaded", lambda: True)
    pytester.makepyfile(f"{BUSY}\ndef test_slow(): work(0.4)")
    run(pytester).assert_outcomes(passed=1)


def test_time_in_fixtures_does_not_count(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(f"{BUSY}\n@pytest.fixture\ndef made():\n    work(0.4)\n\ndef test_of_what_is_made(made): pass")
    run(pytester).assert_outcomes(passed=1)


def test_slow_test_in_a_lane_passes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(f"{BUSY}\n@pytest.mark.kill\ndef test_slow(): work(0.4)")
    run(pytester).assert_outcomes(passed=1)


def test_markers_and_fixtures_put_a_test_in_a_lane(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "import pytest\n"
        "@pytest.fixture\ndef s3(): pass\n"
        "@pytest.mark.slow\ndef test_slow(): pass\n"
        "@pytest.mark.documentation\ndef test_of_a_page(): pass\n"
        "def test_of_storage(s3): pass\n"
        "@pytest.mark.quick\ndef test_quick(): pass\n"
    )
    run(pytester, "-m", "not lane").assert_outcomes(passed=1, deselected=3)
    run(pytester, "-m", "lane and not slow").assert_outcomes(passed=2, deselected=2)
    run(pytester, "-m", "s3").assert_outcomes(passed=1, deselected=3)


def test_without_torch_tests_that_need_a_missing_tool_are_skipped(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simulates the CI runners for Windows and macOS, which have no browser."""
    monkeypatch.setattr(light, "_IS_LIGHT", True)
    for name in ("axe_playwright_python", "playwright", "psutil", "fastapi"):
        monkeypatch.setitem(sys.modules, name, None)
    pytester.makepyfile(
        test_browser="import playwright.sync_api\ndef test_page(): pass",
        test_access="from axe_playwright_python.sync_playwright import Axe\ndef test_page(): pass",
        test_memory="def test_here(): pass\ndef test_there(): import psutil",
        test_server="import fastapi\ndef test_page(): pass",
    )
    result = pytester.runpytest_inprocess(
        *("-p", "tests.support.light", "-p", "no:cacheprovider", "--continue-on-collection-errors")
    )
    result.assert_outcomes(passed=1, skipped=3, errors=1)
    result.stdout.fnmatch_lines(["ERROR*test_server.py*"])
