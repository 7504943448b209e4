"""Clusters of machines that work on an index: the interface a cluster package implements, and opening one by name.

A name is an entry point in the group ``vidkin.clusters``, optionally followed by an address: ``ray``,
``ray:HOST:PORT``. The package vidkin-scale provides ``ray``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from vidkin._base.arguments import check_arguments
from vidkin._base.registry import Registry, missing_scale, parse_name
from vidkin.index.ingest.executor import Executor
from vidkin.index.query.stages import Ranker
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.manifest import WorkerSpec
from vidkin.index.storage.place import Place
from vidkin.index.storage.tasks import Mapper


class ClusterSearch(Ranker, Mapper, Protocol):
    """Searches and compares the videos of one index on the machines of a cluster."""

    def attach(self, store: VectorStore) -> None:
        """Make a store read its videos on the cluster machines, if it supports that."""

    def close(self) -> None:
        """Release the cluster's resources for this index."""


class Cluster(Protocol):
    """A connection to a cluster of machines."""

    def executor(self, spec: WorkerSpec, *, workers: int | None = None) -> Executor:
        """Create an executor for :meth:`vidkin.Index.add` that extracts features on the cluster.

        Args:
            spec: Extractor and settings of the index, :attr:`vidkin.Index.worker_spec`.
            workers: Maximum number of files processed at a time; default: one per processor.

        Raises:
            ClusterError: The cluster does not answer.
        """

    def search(self, place: Place) -> ClusterSearch:
        """Prepare the cluster to search and compare the videos of an index, until the returned object is closed.

        Args:
            place: Location of the index; all machines must be able to access it.

        Raises:
            ClusterError: The cluster does not answer.
        """


CLUSTERS: Registry[Callable[[str | None], Cluster]] = Registry("cluster", {}, group="vidkin.clusters")
"""Functions that open a cluster at an address; None stands for the default address."""


@check_arguments
def open_cluster(name: str) -> Cluster:
    """Open a cluster by name; the connection is made on first use.

    Raises:
        InvalidArgumentError: There is no such kind of cluster, or its address is malformed.
        MissingPartError: The package that provides this kind of cluster is not installed.
    """
    kind = parse_name(name)
    opener = CLUSTERS.find(kind.prefix)
    if opener is None:
        raise missing_scale(f"the cluster {name}") or CLUSTERS.unknown(name)
    return opener(kind.address)
