"""Room index: the embedded store, ingest, two-stage search, duplicates."""

from vidkin.index.collection import Index
from vidkin.index.comparison import compare
from vidkin.index.duplicates import DuplicateGroup, DuplicateMember
from vidkin.index.executor import Advanced, Described, Event, Executor, Idle, SerialExecutor, Unreadable
from vidkin.index.info import IndexInfo
from vidkin.index.lance_store import LanceStore
from vidkin.index.match import Comparison, Match
from vidkin.index.memory_store import MemoryStore
from vidkin.index.process_executor import ProcessExecutor
from vidkin.index.recall import RecallReport
from vidkin.index.repair import DamagedPart, repair
from vidkin.index.report import FileOutcome, IngestInterrupted, IngestReport, Progress
from vidkin.index.scan import VIDEO_EXTENSIONS, Scan, scan
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
from vidkin.index.windows import sampling_rate, window_vectors
from vidkin.index.worker import FeatureChunk, WorkerSpec, describe_video

__all__ = [
    "NO_WINDOW",
    "VIDEO_EXTENSIONS",
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
