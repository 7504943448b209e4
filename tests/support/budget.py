"""A pytest plugin that fails tests which take too long.

The ini option ``seconds_a_test`` is the limit, 0 for none. Both wall-clock and CPU time must exceed it, because
wall-clock time alone means little on a busy machine. Tests in a lane (see :mod:`tests.support.lanes`) have no limit,
and
no test fails if the load average is more than twice the number of CPUs, which increases CPU time as well. Coverage
makes
tests slower: measure it with ``-o seconds_a_test=0``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator

import pytest

__all__ = ["is_overloaded", "processor_seconds"]


def processor_seconds() -> float:
    """CPU time in seconds of this process and of the children it has waited for."""
    return sum(os.times()[:4])


def is_overloaded() -> bool:
    """Whether the load is so high that even CPU time depends more on the machine than on the test."""
    return hasattr(os, "getloadavg") and os.getloadavg()[0] > 2 * (os.cpu_count() or 1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("seconds_a_test", "time limit in seconds for tests without a lane, 0 for no limit", default="0")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    limit = float(item.config.getini("seconds_a_test"))
    clock, processors = time.monotonic(), processor_seconds()
    yield
    clock, processors = time.monotonic() - clock, processor_seconds() - processors
    exempt = item.get_closest_marker("lane") is not None
    if limit and not exempt and min(clock, processors) > limit and not is_overloaded():
        pytest.fail(
            f"the test must take at most {limit:g} s, got {clock:.1f} s ({processors:.1f} s of processors); "
            "make it smaller, or give it the marker of a lane (tests/support/lanes.py)",
            pytrace=False,
        )
