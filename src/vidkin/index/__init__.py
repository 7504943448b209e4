"""The video index: embedded store, ingest, two-stage search, duplicates.

What is named here is imported when it is first used: a worker process needs little of it, and a list of videos less.
"""

from typing import TYPE_CHECKING

from vidkin._base.registry import lazy_names

if TYPE_CHECKING:
    from vidkin.index.clusters import Cluster, ClusterSearch, open_cluster
    from vidkin.index.collection import Index
    from vidkin.index.damage import DamagedPart, check_files, repair
    from vidkin.index.duplicates.coverage import Coverage, CoverStep, SharedStretch
    from vidkin.index.duplicates.differences import Difference, DifferenceKind
    from vidkin.index.duplicates.members import DuplicateGroup, DuplicateMember, FoundGroup
    from vidkin.index.duplicates.plans import DuplicatePlan, check_plan_is_settled, plan_removal, read_plan, write_plan
    from vidkin.index.duplicates.plans_signature import PlanKey, key_of_plan, place_of_plan, sign_plan
    from vidkin.index.duplicates.prove_pair import prove_pair
    from vidkin.index.duplicates.removal import apply_plan
    from vidkin.index.duplicates.removal_files import FileAction
    from vidkin.index.duplicates.removal_log import Journal
    from vidkin.index.duplicates.removal_undo import undo
    from vidkin.index.duplicates.removals import Removal, Removals, RemovedFile
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
    from vidkin.index.query.sound import SoundOffset, compare, find_offset
    from vidkin.index.query.stage_recall import RecallReport
    from vidkin.index.query.stages import Comparison, Match, Ranker
    from vidkin.index.recurring.companions import Companion, write_companions
    from vidkin.index.recurring.groups import Occurrence, RecurringGroup
    from vidkin.index.storage.contract import NO_WINDOW, MemoryStore, NearestWindows, VectorStore
    from vidkin.index.storage.decisions import Decision
    from vidkin.index.storage.files import is_gone
    from vidkin.index.storage.folder_rules import FolderRules
    from vidkin.index.storage.lance import LanceStore
    from vidkin.index.storage.lists import SavedList
    from vidkin.index.storage.manifest import IndexInfo, WorkerSpec
    from vidkin.index.storage.opening import open_place
    from vidkin.index.storage.records import (
        Entry,
        VideoRecord,
        WindowVectors,
        query_rate,
        sampling_rate,
        to_stored,
        window_vectors,
    )
    from vidkin.index.watch import watch_folders
else:
    __getattr__ = lazy_names(__name__)

__all__ = [
    "BIN",
    "LINK_TO_FOLDER",
    "NO_WINDOW",
    "PHOTOGRAPH",
    "Advanced",
    "Cluster",
    "ClusterSearch",
    "CollectionMap",
    "Companion",
    "Comparison",
    "CoverStep",
    "Coverage",
    "DamagedPart",
    "Decision",
    "Described",
    "Difference",
    "DifferenceKind",
    "DuplicateGroup",
    "DuplicateMember",
    "DuplicatePlan",
    "Entry",
    "Event",
    "Executor",
    "FileAction",
    "FileOutcome",
    "FolderRules",
    "FoundGroup",
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
    "Occurrence",
    "PlanKey",
    "ProcessExecutor",
    "Progress",
    "Prune",
    "Ranker",
    "RecallReport",
    "RecurringGroup",
    "Removal",
    "Removals",
    "RemovedFile",
    "SavedList",
    "Scan",
    "SerialExecutor",
    "SharedStretch",
    "SoundOffset",
    "Unreadable",
    "VectorStore",
    "VideoFile",
    "VideoRecord",
    "WindowVectors",
    "WorkerSpec",
    "apply_plan",
    "check_files",
    "check_plan_is_settled",
    "compare",
    "describe_video",
    "find_offset",
    "is_gone",
    "key_of_plan",
    "map_collection",
    "map_shots",
    "open_cluster",
    "open_place",
    "place_of_plan",
    "plan_removal",
    "prove_pair",
    "query_rate",
    "read_plan",
    "repair",
    "sampling_rate",
    "scan",
    "sign_plan",
    "to_stored",
    "undo",
    "watch_folders",
    "window_vectors",
    "write_companions",
    "write_plan",
]
