"""Room index: the embedded store, ingest, two-stage search, duplicates."""

from vidkin.index.lance_store import LanceStore
from vidkin.index.memory_store import MemoryStore
from vidkin.index.store import (
    NO_WINDOW,
    BaselineFunction,
    Entry,
    NearestWindows,
    StoredFeatures,
    VectorStore,
    VideoRecord,
    WindowVectors,
)

__all__ = [
    "NO_WINDOW",
    "BaselineFunction",
    "Entry",
    "LanceStore",
    "MemoryStore",
    "NearestWindows",
    "StoredFeatures",
    "VectorStore",
    "VideoRecord",
    "WindowVectors",
]
