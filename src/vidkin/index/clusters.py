"""Clusters of machines that work on an index: the contract of a cluster package, and names of clusters.

A name is an entry point of the group ``vidkin.clusters``, optionally with an address: ``ray``, ``ray:HOST:PORT``. The
package vidkin-scale provides ``ray``.
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
    """Machines of a cluster that search and compare the videos of one index."""

    def attach(self, store: VectorStore) -> None:
        """Make a store read its videos on the machines, if it supports that."""

    def close(self) -> None:
        """End the machines' work on this index."""


class Cluster(Protocol):
    """A connection to machines that work on indexes."""

    def executor(self, spec: WorkerSpec, *, workers: int | None = None) -> Executor:
        """Create an executor that describes videos on the machines, for :meth:`vidkin.Index.add`.

        Args:
            spec: Extractor and settings of the index, :attr:`vidkin.Index.worker_spec`.
            workers: Maximum number of files described at a time; default: one per processor.

        Raises:
            ClusterError: The cluster does not answer.
        """

    def search(self, place: Place) -> ClusterSearch:
        """Start searching and comparing on the machines, until the result is closed.

        Args:
            place: Location of the index, which all machines can reach.

        Raises:
            ClusterError: The cluster does not answer.
        """


CLUSTERS: Registry[Callable[[str | None], Cluster]] = Registry("cluster", {}, group="vidkin.clusters")
"""Functions that open a cluster at an address; None is the default address."""


@check_arguments
def open_cluster(name: str) -> Cluster:
    """Open a cluster by name, without connecting yet.

    Raises:
        InvalidArgumentError: There is no such kind of cluster, or its address is malformed.
        MissingPartError: The package that provides clusters is not installed.
    """
    kind = parse_name(name)
    opener = CLUSTERS.find(kind.prefix)
    if opener is None:
        raise missing_scale(f"the cluster {name}") or CLUSTERS.unknown(name)
    return opener(kind.address)
