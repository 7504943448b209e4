"""Room index: the embedded store, ingest, two-stage search, duplicates."""

from vidkin.index.collection import Index
from vidkin.index.info import IndexInfo
from vidkin.index.ingest.executor import (
    Advanced,
    Described,
    Event,
    Executor,
    Idle,
    SerialExecutor,
    Unreadable,
)
from vidkin.index.ingest.processes import ProcessExecutor
from vidkin.index.ingest.report import FileOutcome, IngestInterrupted, IngestReport, Progress
from vidkin.index.ingest.scan import Scan, scan
from vidkin.index.ingest.worker import FeatureChunk, WorkerSpec, describe_video
from vidkin.index.match import Comparison, Match
from vidkin.index.repair import DamagedPart, repair
from vidkin.index.search.compare import compare
from vidkin.index.search.duplicates import DuplicateGroup, DuplicateMember
from vidkin.index.search.recall import RecallReport
from vidkin.index.storage.contract import (
    NO_WINDOW,
    BaselineFunction,
    Entry,
    NearestWindows,
    StoredFeatures,
    VectorStore,
    VideoRecord,
    WindowVectors,
)
from vidkin.index.storage.lance import LanceStore
from vidkin.index.storage.memory import MemoryStore
from vidkin.index.windows import sampling_rate, window_vectors

__all__ = [
    "NO_WINDOW",
    "Advanced",
    "BaselineFunction",
    "Comparison",
    "DamagedPart",
    "Described",
    "DuplicateGroup",
    "DuplicateMember",
    "Entry",
    "Event",
    "Executor",
    "FeatureChunk",
    "FileOutcome",
    "Idle",
    "Index",
    "IndexInfo",
    "IngestInterrupted",
    "IngestReport",
    "LanceStore",
    "Match",
    "MemoryStore",
    "NearestWindows",
    "ProcessExecutor",
    "Progress",
    "RecallReport",
    "Scan",
    "SerialExecutor",
    "StoredFeatures",
    "Unreadable",
    "VectorStore",
    "VideoRecord",
    "WindowVectors",
    "WorkerSpec",
    "compare",
    "describe_video",
    "repair",
    "sampling_rate",
    "scan",
    "window_vectors",
]
