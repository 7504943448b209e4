"""A pytest plugin that selects the tests which `make test` leaves to `make test-all`.

A test is in a lane if it has the lane's marker or uses a fixture of :data:`FIXTURES`. All tests in lanes, including
slow
ones, also get the marker ``lane``, so that ``-m "not lane"`` selects the quick tests.
"""

from __future__ import annotations

import pytest

__all__ = ["FIXTURES", "LANES"]

LANES = {
    "browser": "drives Chromium",
    "cluster": "starts a Ray cluster",
    "documentation": "runs every block of code of the documents",
    "hostile": "replaces each file of a folder by something else in turn, or looks at files made to take long",
    "install": "installs vidkin without extras into an environment of its own",
    "kill": "kills processes that it starts, cuts the power at each operation, or waits until a process counts as hung",
    "large": "makes long or many videos, trains several times, or searches with the slower extractors",
    "process": "starts programs of its own, each of which imports everything anew",
    "research": "is a test of vidkin-research, given to every one of them",
    "s3": "talks to a server of object storage",
    "scale": "is a test of vidkin-scale, given to every one of them",
    "slow": "takes minutes, not seconds",
    "thorough": "covers a rarer case of what a quick test covers, with videos, an index or a training of its own",
}
FIXTURES = {
    "bare": "install",
    "browser": "browser",
    "built": "process",
    "bundle": "install",
    "cluster": "cluster",
    "s3": "s3",
    "worker_processes": "process",
}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "lane: not run by `make test`; given to every test of a lane")
    for name, description in LANES.items():
        config.addinivalue_line("markers", f"{name}: {description}; run by `make test-all`")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for fixture, lane in FIXTURES.items():
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(lane)
        for package in ("research", "scale"):
            if item.path.is_relative_to(item.config.rootpath / package):
                item.add_marker(package)
        if any(item.get_closest_marker(lane) for lane in LANES):
            item.add_marker("lane")
