"""A Ray cluster of two nodes on the loopback interface, an object storage server, and fixtures of vidkin."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from scale.tests.s3_server import S3Server, serve_s3

from tests.conftest import (
    _no_waiting_for_the_disk,
    _ordinary_scheduling,
    _quiet_threads,
    _workers_in_this_process,
)
from vidkin_scale.connection import import_ray

__all__ = [
    "_no_waiting_for_the_disk",
    "_ordinary_scheduling",
    "_quiet_threads",
    "_workers_in_this_process",
]

# Not 127.0.0.1, which Ray replaces by the network address of the machine.
LOOPBACK = {"node_ip_address": "127.0.0.2", "object_store_memory": 80 * 2**20}


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """A head without CPUs, so that all work is on nodes that tests may remove; this process is connected."""
    ray = import_ray()
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **LOOPBACK})
    cluster.add_node(num_cpus=2, **LOOPBACK)
    ray.init(
        address=cluster.address,
        log_to_driver=False,
        configure_logging=False,
        logging_level="ERROR",
        namespace="vidkin",
    )
    yield cluster
    ray.shutdown()
    cluster.shutdown()
    del cluster
    with warnings.catch_warnings():
        # Ray does not wait for all processes that it terminates.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """A server with the bucket "bucket", configured through environment variables."""
    with serve_s3("bucket") as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        yield server
