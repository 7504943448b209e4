"""Clusters of machines that work on an index: what a package that brings one offers, and how one is named.

A name is that of an entry point of the group ``vidkin.clusters``, with an address where several are possible:
``ray``, ``ray:HOST:PORT``. The package vidkin-scale brings ``ray``.
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
    """The machines of a cluster that search and compare the videos of one index."""

    def attach(self, store: VectorStore) -> None:
        """Have a store read its videos where the machines are; does nothing to a store that cannot do that."""

    def close(self) -> None:
        """End the work of the machines on this index."""


class Cluster(Protocol):
    """Machines that work for this one."""

    def executor(self, spec: WorkerSpec, *, workers: int | None = None) -> Executor:
        """What describes videos on the machines, for :meth:`vidkin.Index.add`.

        Args:
            spec: What the features are made with, :attr:`vidkin.Index.worker_spec`.
            workers: Maximum number of files that are described at a time; default one for each processor.

        Raises:
            ClusterError: No cluster answers.
        """

    def search(self, place: Place) -> ClusterSearch:
        """What searches and compares on the machines until it is closed.

        Args:
            place: Place of the index, which all machines see.

        Raises:
            ClusterError: No cluster answers.
        """


CLUSTERS: Registry[Callable[[str | None], Cluster]] = Registry("cluster", {}, group="vidkin.clusters")
"""Opens a cluster at an address; None is the usual one of its kind."""


@check_arguments
def open_cluster(name: str) -> Cluster:
    """The cluster of this name; nothing is connected yet.

    Raises:
        InvalidArgumentError: There is no cluster of this kind, or its address is malformed.
        MissingPartError: The package that brings clusters is not installed.
    """
    kind = parse_name(name)
    opener = CLUSTERS.find(kind.prefix)
    if opener is None:
        raise missing_scale(f"the cluster {name}") or CLUSTERS.unknown(name)
    return opener(kind.address)
