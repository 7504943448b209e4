"""A Ray cluster of two nodes on this machine's loopback, for the tests of this folder."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from vidkin.index.cluster.connection import import_ray

# Not 127.0.0.1, which Ray takes for the machine's address in its network.
LOOPBACK = {"node_ip_address": "127.0.0.2", "object_store_memory": 80 * 2**20}


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """A head without processors, so that all work is on nodes that tests may remove; this process is connected."""
    pytest.importorskip("ray")
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
        # Ray does not wait for all of the processes that it ends.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
