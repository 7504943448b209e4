"""Clusters are opened by name; a stand-in package provides one."""

from __future__ import annotations

import importlib.util

import pytest

from vidkin.errors import InvalidArgumentError, MissingPartError
from vidkin.index import open_cluster


def test_name_is_resolved_to_a_cluster_and_an_address() -> None:
    for name, address in (("stand-in", None), ("stand-in:10.0.0.5:6379", "10.0.0.5:6379")):
        cluster = open_cluster(name)
        assert type(cluster).__name__ == "StandInCluster"
        assert vars(cluster) == {"address": address}


def test_error_for_a_cluster_that_is_not_installed_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingPartError, match=r'^the cluster ray:auto needs the package vidkin-scale, .*/scale"'):
        open_cluster("ray:auto")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    with pytest.raises(InvalidArgumentError, match=r"^'slurm' is not a cluster; choose from stand-in$"):
        open_cluster("slurm")
