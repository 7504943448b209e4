"""Numbers about an index."""

from __future__ import annotations

from dataclasses import dataclass

from vidkin._base.plain_values import Result
from vidkin.index.ingest.files.content import is_gone
from vidkin.index.manifest import Manifest
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.places.contract import Place

__all__ = ["IndexInfo", "collect_info"]


@dataclass(frozen=True, slots=True)
class IndexInfo(Result):
    """Contents and size of an index.

    Attributes:
        path: Folder of the index, or its address on object storage.
        extractor: Name of what makes its features.
        whitening: File of the whitening that the index was made with; None without one.
        fingerprint: Identifies the extractor with its settings, weights and whitening.
        measure: Kind of its scores: ``copies``, or ``kinds`` for a trained model.
        sampling_rate: Frames per second of ordinary videos.
        videos: Number of videos that can be searched.
        broken: Number of files that cannot be read, or must be read again.
        missing: Number of files that no longer exist; their stored features can still be searched.
        damaged: Number of videos of which a part could not be read; ``vidkin info --videos`` says what.
        frames: Number of frames with features.
        windows: Number of windows that the first stage of search looks at.
        seconds: Duration of all videos.
        bytes: Size of all its files.
        created: ISO 8601 time.
    """

    path: str
    extractor: str
    whitening: str | None
    fingerprint: str
    measure: str
    sampling_rate: float
    videos: int
    broken: int
    missing: int
    damaged: int
    frames: int
    windows: int
    seconds: float
    bytes: int
    created: str


def collect_info(place: Place, manifest: Manifest, store: VectorStore) -> IndexInfo:
    """Collect the numbers of an index."""
    records = store.videos()
    return IndexInfo(
        path=place.uri,
        extractor=manifest.extractor,
        whitening=manifest.whitening,
        fingerprint=manifest.fingerprint,
        measure=manifest.scorer_name,
        sampling_rate=manifest.sampling_rate,
        videos=sum(record.status == "ok" for record in records),
        broken=sum(record.status != "ok" for record in records),
        missing=sum(is_gone(record.path) for record in records),
        damaged=sum(bool(record.damage) for record in records),
        frames=sum(record.frames for record in records),
        windows=sum(record.windows for record in records),
        seconds=sum(record.duration for record in records),
        bytes=sum(place.sizes().values()),
        created=manifest.created,
    )
