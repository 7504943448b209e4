"""Ray clusters, which vidkin opens by the name ``ray`` or ``ray:ADDRESS``."""

from __future__ import annotations

from vidkin.index import WorkerSpec
from vidkin.index.storage.place import Place
from vidkin_scale.connection import check_address
from vidkin_scale.executor import RayExecutor
from vidkin_scale.ranker import RayRanker


class RayCluster:
    """A :class:`~vidkin.index.Cluster`.

    Args:
        address: Address of the cluster, see :func:`~vidkin_scale.connection.connect`.

    Raises:
        InvalidArgumentError: The address is malformed.
    """

    def __init__(self, address: str | None = None) -> None:
        if address:
            check_address(address)
        self._address = address

    def executor(self, spec: WorkerSpec, *, workers: int | None = None) -> RayExecutor:
        return RayExecutor(spec, address=self._address, workers=workers)

    def search(self, place: Place) -> RayRanker:
        return RayRanker(place, address=self._address)
