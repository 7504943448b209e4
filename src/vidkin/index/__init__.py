"""The video index: embedded store, ingest, two-stage search, duplicates."""

from vidkin.index.cluster.executor import RayExecutor
from vidkin.index.cluster.ranker import RayRanker
from vidkin.index.collection import Index
from vidkin.index.decisions import Decision
from vidkin.index.duplicates.groups import DuplicateGroup, DuplicateMember
from vidkin.index.duplicates.removal.actions import FileAction, apply_plan, undo
from vidkin.index.duplicates.removal.journal import Journal
from vidkin.index.duplicates.removal.plans import DuplicatePlan, plan_removal, read_plan, write_plan
from vidkin.index.info import IndexInfo
from vidkin.index.ingest.files.content import is_gone
from vidkin.index.ingest.files.rules import FolderRules
from vidkin.index.ingest.files.scan import LINK_TO_FOLDER, Scan, VideoFile, scan
from vidkin.index.ingest.report import FileOutcome, IngestInterrupted, IngestReport, Progress
from vidkin.index.ingest.workers.executor import (
    Advanced,
    Described,
    Event,
    Executor,
    Idle,
    Unreadable,
    WorkerSpec,
)
from vidkin.index.ingest.workers.processes import ProcessExecutor
from vidkin.index.ingest.workers.serial import SerialExecutor, describe_video
from vidkin.index.records import Entry, VideoRecord, WindowVectors, to_stored
from vidkin.index.repair import DamagedPart, check_files, repair
from vidkin.index.sampling_rate import query_rate, sampling_rate
from vidkin.index.search.compare import compare
from vidkin.index.search.match import Comparison, Match
from vidkin.index.search.stage_recall import RecallReport
from vidkin.index.search.stages import Ranker
from vidkin.index.storage.contract import NO_WINDOW, NearestWindows, VectorStore
from vidkin.index.storage.lance import LanceStore
from vidkin.index.storage.memory import MemoryStore
from vidkin.index.windows import window_vectors

__all__ = [
    "LINK_TO_FOLDER",
    "NO_WINDOW",
    "Advanced",
    "Comparison",
    "DamagedPart",
    "Decision",
    "Described",
    "DuplicateGroup",
    "DuplicateMember",
    "DuplicatePlan",
    "Entry",
    "Event",
    "Executor",
    "FileAction",
    "FileOutcome",
    "FolderRules",
    "Idle",
    "Index",
    "IndexInfo",
    "IngestInterrupted",
    "IngestReport",
    "Journal",
    "LanceStore",
    "Match",
    "MemoryStore",
    "NearestWindows",
    "ProcessExecutor",
    "Progress",
    "Ranker",
    "RayExecutor",
    "RayRanker",
    "RecallReport",
    "Scan",
    "SerialExecutor",
    "Unreadable",
    "VectorStore",
    "VideoFile",
    "VideoRecord",
    "WindowVectors",
    "WorkerSpec",
    "apply_plan",
    "check_files",
    "compare",
    "describe_video",
    "is_gone",
    "plan_removal",
    "query_rate",
    "read_plan",
    "repair",
    "sampling_rate",
    "scan",
    "to_stored",
    "undo",
    "window_vectors",
    "write_plan",
]
