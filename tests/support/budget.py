"""The time that a test may take: a plugin of pytest that fails one that takes longer.

The ini option ``seconds_a_test`` is the limit, 0 for none. Both the clock and the processors must say that a test is
over it: on a busy machine the clock alone says nothing. Tests of a lane (see :mod:`tests.support.lanes`) have no
limit, and nothing is judged while more than twice as many programs want a processor as there are: then processor time
grows as well. Coverage makes tests slower: measure it with ``-o seconds_a_test=0``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator

import pytest

__all__ = ["is_overloaded", "processor_seconds"]


def processor_seconds() -> float:
    """Seconds of processor time of this process and of the children that it has waited for."""
    return sum(os.times()[:4])


def is_overloaded() -> bool:
    """Whether so many programs run that even processor time says more of the machine than of the test."""
    return hasattr(os, "getloadavg") and os.getloadavg()[0] > 2 * (os.cpu_count() or 1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("seconds_a_test", "longest time of a test that is in no lane, 0 for no limit", default="0")


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
