"""The video index: storage, ingest, two-stage search, duplicates, and recurring segments.

Names are imported on first use, because worker processes and commands that only list videos need few of them.
"""

from typing import TYPE_CHECKING

from vidkin._base.registry import lazy_names

if TYPE_CHECKING:
    from vidkin.index.clusters import Cluster, ClusterSearch, open_cluster
    from vidkin.index.collection import Index
    from vidkin.index.damage import DamagedPart, check_files, repair
    from vidkin.index.duplicates.comparisons import Comparisons, FileRecord, PairResult
    from vidkin.index.duplicates.coverage import Coverage, CoverStep, SharedStretch
    from vidkin.index.duplicates.differences import Difference, DifferenceKind
    from vidkin.index.duplicates.history import Removal, Removals, RemovedFile
    from vidkin.index.duplicates.members import DuplicateGroup, DuplicateMember, FoundGroup
    from vidkin.index.duplicates.planning import plan_removal
    from vidkin.index.duplicates.prove_pair import prove_pair
    from vidkin.index.duplicates.traits import Traits
    from vidkin.index.embedding import embed
    from vidkin.index.ingest.executor import (
        Advanced,
        Described,
        Event,
        Executor,
        Idle,
        SerialExecutor,
        Unreadable,
        describe_video,
    )
    from vidkin.index.ingest.processes import ProcessExecutor
    from vidkin.index.ingest.pruning import Prune
    from vidkin.index.ingest.report import FileOutcome, IngestInterrupted, IngestReport, Progress
    from vidkin.index.ingest.scan import BIN, LINK_TO_FOLDER, PHOTOGRAPH, Scan, VideoFile, scan
    from vidkin.index.overview import CollectionMap, map_collection, map_shots
    from vidkin.index.pooling import IndexPair
    from vidkin.index.query.calibration import Calibration
    from vidkin.index.query.exact_times import refine_segment
    from vidkin.index.query.learned_scale import LearnedScale
    from vidkin.index.query.sound import By, SoundOffset, compare, find_offset
    from vidkin.index.query.stage_recall import RecallReport
    from vidkin.index.query.stages import Comparison, Match, Ranker, score_candidates
    from vidkin.index.recurring.companions import Companion, write_companions
    from vidkin.index.recurring.groups import Occurrence, RecurringGroup
    from vidkin.index.storage.contract import NO_WINDOW, MemoryStore, NearestWindows, VectorStore, no_windows
    from vidkin.index.storage.decisions import DecidedStretch, Decision, Decisions, RecurringDecision
    from vidkin.index.storage.files import is_gone
    from vidkin.index.storage.folder_rules import FolderRules
    from vidkin.index.storage.lists import SavedList, SavedLists
    from vidkin.index.storage.manifest import IndexInfo, Manifest, WorkerSpec
    from vidkin.index.storage.opening import LocalPlace, open_place
    from vidkin.index.storage.place import Location, Place
    from vidkin.index.storage.records import (
        Entry,
        VideoRecord,
        query_rate,
        sampling_rate,
        to_stored,
        window_vectors,
    )
    from vidkin.index.storage.sound_files import SoundFiles
    from vidkin.index.storage.store import DiskStore
    from vidkin.index.storage.stores import StoreKind
    from vidkin.index.storage.tasks import MapHere, MappedJob, Task
    from vidkin.index.watch import watch_folders
else:
    __getattr__ = lazy_names(__name__)

__all__ = [
    "BIN",
    "LINK_TO_FOLDER",
    "NO_WINDOW",
    "PHOTOGRAPH",
    "Advanced",
    "By",
    "Calibration",
    "Cluster",
    "ClusterSearch",
    "CollectionMap",
    "Companion",
    "Comparison",
    "Comparisons",
    "CoverStep",
    "Coverage",
    "DamagedPart",
    "DecidedStretch",
    "Decision",
    "Decisions",
    "Described",
    "Difference",
    "DifferenceKind",
    "DiskStore",
    "DuplicateGroup",
    "DuplicateMember",
    "Entry",
    "Event",
    "Executor",
    "FileOutcome",
    "FileRecord",
    "FolderRules",
    "FoundGroup",
    "Idle",
    "Index",
    "IndexInfo",
    "IndexPair",
    "IngestInterrupted",
    "IngestReport",
    "LearnedScale",
    "LocalPlace",
    "Location",
    "Manifest",
    "MapHere",
    "MappedJob",
    "Match",
    "MemoryStore",
    "NearestWindows",
    "Occurrence",
    "PairResult",
    "Place",
    "ProcessExecutor",
    "Progress",
    "Prune",
    "Ranker",
    "RecallReport",
    "RecurringDecision",
    "RecurringGroup",
    "Removal",
    "Removals",
    "RemovedFile",
    "SavedList",
    "SavedLists",
    "Scan",
    "SerialExecutor",
    "SharedStretch",
    "SoundFiles",
    "SoundOffset",
    "StoreKind",
    "Task",
    "Traits",
    "Unreadable",
    "VectorStore",
    "VideoFile",
    "VideoRecord",
    "WorkerSpec",
    "check_files",
    "compare",
    "describe_video",
    "embed",
    "find_offset",
    "is_gone",
    "map_collection",
    "map_shots",
    "no_windows",
    "open_cluster",
    "open_place",
    "plan_removal",
    "prove_pair",
    "query_rate",
    "refine_segment",
    "repair",
    "sampling_rate",
    "scan",
    "score_candidates",
    "to_stored",
    "watch_folders",
    "window_vectors",
    "write_companions",
]
