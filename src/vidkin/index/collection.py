"""The class `Index`, through which most programs use vidkin."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_all_arguments, check_constructor
from vidkin._base.blas import one_blas_thread
from vidkin._base.stopping import check_wanted, report_to
from vidkin._base.values import check_choice, check_share
from vidkin.errors import CollectionError, CollectionMismatchError, IndexClosedError, InvalidArgumentError, MediaError
from vidkin.features import FrameExtractor
from vidkin.index.duplicates.comparisons import Comparisons, content_of, present_files
from vidkin.index.duplicates.pair_scores import IgnoredEnds
from vidkin.index.duplicates.scope import Scope
from vidkin.index.ingest.report import IngestInterrupted, Progress
from vidkin.index.ingest.scan import Scan, scan
from vidkin.index.pooling import IndexPair, embed_videos, known_pairs
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.decisions import (
    Decision,
    Decisions,
    content_hash_of,
    decide_pair,
    find_records,
    forget_pair,
    has_record,
    list_decisions,
    prefer_copy,
)
from vidkin.index.storage.files import is_gone
from vidkin.index.storage.lists import SavedList, change_saved_list, read_saved_lists, rename_saved_list
from vidkin.index.storage.manifest import (
    DISK,
    IndexInfo,
    Manifest,
    WorkerSpec,
    count_contents,
    create_index,
    open_index_extractor,
    remember_places,
    resolve_spec,
)
from vidkin.index.storage.opening import folder_of, open_place
from vidkin.index.storage.place import Location, Place
from vidkin.index.storage.records import VideoRecord
from vidkin.index.storage.stores import find_store_kind, open_store
from vidkin.index.storage.tasks import Mapper
from vidkin.media.frames import Time
from vidkin.media.notebook import Results
from vidkin.similarity import EXCERPT, SURE, FrameFeatures, Scorer

if TYPE_CHECKING:
    from vidkin.files.findings import FindingKind
    from vidkin.index.clusters import ClusterSearch
    from vidkin.index.duplicates.coverage import Coverage
    from vidkin.index.duplicates.members import DuplicateGroup, FoundGroup
    from vidkin.index.ingest.executor import Executor
    from vidkin.index.ingest.pruning import Prune
    from vidkin.index.ingest.report import IngestReport, OnProgress
    from vidkin.index.query.query import SearchParts
    from vidkin.index.query.sound import By
    from vidkin.index.query.stage_recall import RecallReport
    from vidkin.index.query.stages import Comparison, Match, Ranker
    from vidkin.index.recurring.groups import Occurrence, RecurringGroup
    from vidkin.media import Source

PathLike = str | os.PathLike[str]

_logger = logging.getLogger(__name__)


@check_all_arguments
@check_constructor
class Index:
    """A searchable index of videos and a context manager. Open it with :meth:`open`.

    One process writes at a time, any number read. A reader sees the state of the index when it opened, last searched or
    last called :meth:`refresh`.

    Any number of threads may use it. After :meth:`close` every method raises
    :class:`~vidkin.errors.IndexClosedError`. Running calls can be canceled with :func:`vidkin.stopping_when`, or by an
    exception from their ``on_progress``; finished work is kept.

    Attributes:
        place: Location of the index: a folder, or a prefix on object storage.
        manifest: Settings the index was created with.
        worker_spec: Specification an executor needs to extract features for this index.
    """

    def __init__(
        self, place: Place, manifest: Manifest, store: VectorStore, spec: WorkerSpec, *, read_only: bool, remember: bool
    ) -> None:
        self.place = place
        self.manifest = manifest
        self._store = store
        self.worker_spec = spec
        self._read_only = read_only
        self._remember = remember
        self._ranker: Ranker | None = None
        self._mapper: Mapper | None = None
        self._cluster: ClusterSearch | None = None
        self._closing = threading.Event()
        self._adding = threading.Lock()
        # The thread that adds files.
        self._adder: int | None = None

    @classmethod
    def open(
        cls,
        path: Location,
        *,
        extractor: str | None = None,
        weights: PathLike | None = None,
        whitening: PathLike | None = None,
        rate: float | None = None,
        create: bool = False,
        read_only: bool = False,
        remember: bool = True,
        store: VectorStore | str | None = None,
        device: str = "auto",
    ) -> Index:
        """Open an index, or create one with ``create=True``.

        Args:
            path: Folder of the index, or an address as text, for example ``s3://bucket/films``, which needs the
                package vidkin-scale.
            extractor: Name of the extractor, see :func:`vidkin.features.open_extractor`; default: the extractor of the
                index, or ``vidkin`` for a new one (``classical`` with a whitening). A different extractor than the
                index has is an error.
            weights: The network's weights, a safetensors file; for a new index, or if the file has moved (the new
                location is stored unless ``read_only``).
            whitening: Safetensors file with the whitening of the features, under the same conditions.
            rate: Frames per second sampled from ordinary videos in a new index; default 1.
            create: Create the index if it does not exist; otherwise a missing index is an error.
            read_only: Refuse to write; never creates an index.
            remember: Store comparisons made by searches for duplicates and recurring segments in the index, even with
                ``read_only``; False changes no file of the index.
            store: Storage of records, features and windows. For a new index a name, which never changes: ``disk`` in a
                folder, or a store of another package, such as ``shards:16`` for millions of videos. Or a custom store
                object: settings, calibration and decisions are still stored at ``path``, so always open an index with
                the store it was filled with.
            device: Device for computing features: ``cpu``, ``cuda``, ``cuda:1``, or ``auto`` for CUDA if available.

        Raises:
            CollectionNotFoundError: There is no index, and ``create`` is False.
            CollectionMismatchError: The index was made with a different extractor, weights, rate or store.
            CollectionError: The index is damaged or was made by another version of vidkin, or the folder contains other
                files.
            ExtractorError: The extractor cannot be opened.
        """
        place = open_place(path)
        named = (DISK if place.folder is not None else "lance") if store is None else store
        if create and not read_only and not Manifest.exists(place):
            made = resolve_spec(None, extractor, weights, whitening, rate, device)
            if isinstance(named, str):
                find_store_kind(named, place)
                create_index(place, made, store=named)
            else:
                create_index(place, made)
        manifest = Manifest.read(place)
        if isinstance(store, str) and store != manifest.store:
            raise CollectionMismatchError(
                f"{place.uri} has the store {manifest.store}, got {store}; leave it out, or make a new index"
            )
        spec = resolve_spec(manifest, extractor, weights, whitening, rate, device)
        if store is None or isinstance(store, str):
            store = open_store(place, manifest)
        index = cls(place, manifest, store, spec, read_only=read_only, remember=remember)
        if extractor is not None or weights is not None or whitening is not None:
            # Open the extractor now, so that a wrong one is an error here and not in the first search.
            _logger.debug("%s: features by %s", place.uri, index.extractor.fingerprint)
            if not read_only:
                index.manifest = remember_places(place, manifest, spec)
        return index

    @property
    def store(self) -> VectorStore:
        """Records, features and windows; :class:`~vidkin.errors.IndexClosedError` after :meth:`close`."""
        if self._closing.is_set():
            raise self._closed()
        return self._store

    @property
    def _parts(self) -> SearchParts:
        if self._closing.is_set():
            raise self._closed()
        return self._opened_parts

    @cached_property
    def _opened_parts(self) -> SearchParts:
        # Imported late: reading an index needs neither a decoder nor an extractor.
        from vidkin.index.query.query import SearchParts

        def opened() -> FrameExtractor:
            return open_index_extractor(self.place, self.manifest, self.worker_spec)

        return SearchParts(self.place, self.manifest, self._store, opened)

    def use_sound(self, sound: bool, *, wait: float = 0.0) -> None:
        """Turn audio fingerprints on or off; the next :meth:`add` reads files with sound again."""
        self._check_writable()
        with self.place.exclusive(wait):
            self.manifest = self.manifest.with_sound(self.place, sound)
        self.worker_spec = replace(self.worker_spec, sound=sound)

    @property
    def path(self) -> Path:
        """Folder of the index; :class:`CollectionError` if it is on object storage."""
        return folder_of(self.place)

    @property
    def extractor_name(self) -> str:
        """Name of the extractor."""
        return self.manifest.extractor

    @property
    def extractor(self) -> FrameExtractor:
        """The extractor, opened on first use because listing videos needs none."""
        return self._parts.extractor

    @property
    def scorer(self) -> Scorer:
        """The scorer, which turns two videos into a score."""
        return self._parts.scorer

    @one_blas_thread()
    def add(
        self,
        paths: PathLike | Iterable[PathLike],
        *,
        workers: int | None = None,
        prune: Prune = False,
        exclude: str | Iterable[str] | None = None,
        follow_links: bool | None = None,
        images: bool | None = None,
        include_bins: bool | None = None,
        on_progress: OnProgress | None = None,
        retry_broken: bool = False,
        wait: float = 0.0,
        executor: Executor | None = None,
        found: Scan | None = None,
    ) -> IngestReport:
        """Update the index with folders and files; only new and changed files are read.

        Each video is written when it is complete, so after an interruption the next call resumes. A file that cannot be
        read is listed with its cause; if the cause may be temporary (a killed worker, a hung drive, no memory, an
        internal error, whose traceback is in ``errors.log`` of the index), the next call reads it again.

        Args:
            paths: Folders, files or patterns, see :func:`vidkin.index.ingest.scan.scan`.
            workers: Number of decoding processes; default: one per processor.
            prune: Remove videos of these folders from the index whose files are gone or excluded. If their drive or
                share may not be connected, or more than half would go, ``prune_refused`` of the report says so and
                nothing is removed; ``"anyway"`` removes them.
            exclude, follow_links, images, include_bins: Rules for files in folders, see
                :class:`vidkin.index.FolderRules`; stored in the index. None keeps the current setting.
            on_progress: Callback for each finished file and at intervals in between.
            retry_broken: Read broken files again even if they have not changed.
            wait: Seconds to wait for another writer.
            executor: Computes the features (see :attr:`worker_spec`); default: processes on this machine.
            found: Scan of ``paths`` by a caller that scans repeatedly (:func:`vidkin.index.watch_folders`); default:
                scan now.

        Raises:
            CollectionLockedError: Another process is writing. Calls of several threads wait for each other.
            IngestInterrupted: On Ctrl-C, with the report so far.
            IndexClosedError: Another thread closed the index; complete videos are in it.
        """
        from vidkin.index.ingest.processes import ProcessExecutor
        from vidkin.index.ingest.update import update_index

        self._check_writable()
        if executor is None:
            executor = ProcessExecutor(self.worker_spec, workers=workers)
        rules = self.manifest.rules.changed(exclude, follow_links, images, include_bins)
        files = found or scan([paths] if isinstance(paths, str | os.PathLike) else paths, rules)
        with self._serialize_adds(), self.place.exclusive(wait):
            self.manifest = self.manifest.with_rules(self.place, rules)
            return update_index(
                self.place,
                self.manifest,
                self.store,
                files,
                executor,
                calibrate=self._parts.calibration.calibrate,
                update_scale=self._parts.update_scale,
                prune=prune,
                retry_broken=retry_broken,
                on_progress=partial(self._report, on_progress),
            )

    @contextmanager
    def _serialize_adds(self) -> Iterator[None]:
        """Make other threads that add files wait, and close the index at the end if that was requested meanwhile."""
        with self._adding:
            self._adder = threading.get_ident()
            try:
                yield
            except IngestInterrupted as interrupted:
                if self._closing.is_set():
                    raise self._closed() from interrupted
                raise
            finally:
                self._adder = None
                if self._closing.is_set():
                    self._release()

    def _report(self, on_progress: OnProgress | None, progress: Progress) -> None:
        if self._closing.is_set():
            raise KeyboardInterrupt  # ends like Ctrl-C, with all complete work written
        check_wanted()
        if on_progress is not None:
            on_progress(progress)

    def remove(self, paths: PathLike | Iterable[PathLike], *, wait: float = 0.0) -> int:
        """Remove files, and all files in folders, until :meth:`add` names them again.

        Adding the folder of a removed file does not restore it. Returns the number of records removed, including broken
        files.

        Args:
            paths: Files and folders.
            wait: Seconds to wait for another writer.

        Raises:
            NotIndexedError: A path is not in the index; nothing is removed.
            CollectionLockedError: Another process is writing.
        """
        from vidkin.index.ingest.update import remove_records

        self._check_writable()
        names = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        with self.place.exclusive(wait):
            return remove_records(self.place, self.store, names)

    @one_blas_thread()
    def search(
        self,
        query: Source,
        *,
        start: float | str | None = None,
        end: float | str | None = None,
        frame_rate: float | None = None,
        limit: int = 10,
        offset: int = 0,
        threshold: float = 0.0,
        candidates: int = 100,
        by: By | None = None,
        own: bool = True,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Results[Match]:
        """Find the videos that match a query, best first, and where they match.

        An index made with a trained model ranks by kind instead, on its own scale and without segments
        (:class:`vidkin.similarity.KindScorer`). A file with the same bytes always scores 1, even if it is black.

        Args:
            query: A video or an image, which need not be in the index, see :data:`vidkin.media.Source`: a path, bytes,
                an open binary file, a PIL image, an array, frames. For an image, segments have no length in the query;
                they show the matching moment of each video.
            start, end: Limits of the clip to use, in seconds or as ``"1:02:03.5"``.
            frame_rate: Frames per second of an array or an iterator of frames.
            limit: Maximum number of matches.
            offset: Skip this many of the best matches.
            threshold: Drop scores below this; 0.2 drops nearly all unrelated videos.
            candidates: Number of videos compared exactly; raise it if recall is low (`vidkin doctor`).
            by: Basis of the score: ``picture`` (reads no sound), ``sound``, ``either`` or ``both``. None: the picture,
                reporting the sound score as well; for an audio file its sound.
            own: Whether to report the query itself if it is in the index.
            on_progress: Callback that receives (steps done, total number of steps).

        Raises:
            MediaError: The query cannot be read.
            InvalidArgumentError: A number is out of its range.
        """
        from vidkin.index.query.sound import SearchLimits, search_file
        from vidkin.media.sources import open_source

        if offset < 0:
            raise InvalidArgumentError(f"offset must be at least 0, got {offset}")
        start, end = _seconds(start), _seconds(end)
        most = limit + offset + (not own) if limit > 0 else limit
        limits = SearchLimits(start, end, most, threshold, candidates)
        report = report_to(on_progress)
        with open_source(query, frame_rate, name="query") as path:
            self.refresh()
            left_out = None if own or path not in self else find_records(self.store, path)[0].path
            describe = partial(self._describe, path, start, end, partial(_report_reading, report))
            matches = search_file(path, describe, self._parts, self.manifest, limits, by, self._ranker)
        report(_READING + 1, _READING + 1)
        found = [match for match in matches if match.path != left_out][offset : offset + limit]
        return Results(replace(match, missing=is_gone(match.path)) for match in found)

    def search_many(
        self,
        queries: Iterable[PathLike],
        *,
        limit: int = 10,
        threshold: float = 0.0,
        candidates: int = 100,
        by: By | None = None,
        own: bool = False,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Iterator[Results[Match] | MediaError]:
        """Search for many files, such as all files of the index, one after another.

        Args:
            queries: Videos and images, which need not be in the index.
            limit, threshold, candidates, by: As for :meth:`search`.
            own: Whether to report files of the index as matches of themselves.
            on_progress: Callback that receives (queries done, total number of queries).

        Yields:
            For each query in order: its matches, or the error if the file cannot be read.
        """
        report, names = report_to(on_progress), list(queries)
        for done, query in enumerate(names, start=1):
            try:
                yield self.search(
                    query,
                    limit=limit,
                    threshold=threshold,
                    candidates=candidates,
                    by=by,
                    own=own,
                )
            except MediaError as error:
                yield error
            report(done, len(names))

    @one_blas_thread()
    def match(
        self,
        query: Source,
        target: PathLike,
        *,
        start: float | str | None = None,
        end: float | str | None = None,
        frame_rate: float | None = None,
    ) -> Comparison:
        """Compare a video with one video of the index; the same score as :func:`vidkin.compare`.

        The target is read again at the query's sampling rate. Stored features are used if they are as fine (videos of
        more than 60 s) or if the file is gone.

        Args:
            query: A video or an image, as for :meth:`search`; it need not be in the index.
            target: A file of the index.
            start, end: Limits of the clip of the query to use, in seconds or as ``"1:02:03.5"``.
            frame_rate: Frames per second of an array or an iterator of frames.

        Raises:
            MediaError: The query cannot be read.
            NotIndexedError: The target is not in the index; :func:`vidkin.compare` takes any two files.
        """
        from vidkin.index.query.sound import add_sound
        from vidkin.index.query.stages import compare_pair
        from vidkin.media.sources import open_source, source_name

        self.refresh()
        record = find_records(self.store, target)[0]
        start, end = _seconds(start), _seconds(end)
        with open_source(query, frame_rate, name="query") as path:
            described = self._describe(path, start, end)
            compared = compare_pair(described, self._parts.readings().finest(record), self.scorer)
            sound = self._parts.sound(self.manifest)
            if sound is not None:
                compared = add_sound(compared, path, sound.tracks(record.content_hash), start, end)
        return replace(compared, query=source_name(query), target=record.path)

    @one_blas_thread()
    def duplicates(
        self,
        *,
        threshold: float = SURE,
        parts: bool = False,
        prefer: str | Sequence[str] = (),
        prove: bool = False,
        accept: Collection[FindingKind] = (),
        only: PathLike | Sequence[PathLike] = (),
        across: Sequence[PathLike] = (),
        incoming: PathLike | Sequence[PathLike] = (),
        ignore_start: float = 0.0,
        ignore_end: float = 0.0,
        known_only: bool = False,
        read_files: bool = True,
        workers: int | None = None,
        by: By = "picture",
        on_progress: Callable[[int, int], None] | None = None,
        on_found: Callable[[FoundGroup], None] | None = None,
    ) -> Results[DuplicateGroup]:
        """Find groups of videos with the same footage, without comparing all pairs.

        Uncertain pairs are read again and get the score of :func:`vidkin.compare`. Comparisons are stored in the index,
        even after an interruption.

        Args:
            threshold: Minimum score of two videos in a group, in (0, 1].
            parts: Also group excerpts, and videos that share a part, with the video they match best.
            prefer: Order of preference for the file to keep: columns, each of which breaks ties of the previous ones,
                or folders whose files come first (after ``outside:``, last). Unnamed columns follow in the order
                picture, frame-rate, dynamic-range, sound, streams, metadata, bit-rate, size, age; newest, longest and
                smallest are also available.
            prove: Decode the files of all groups to prove which can be removed; see :func:`vidkin.index.plan_removal`.
                Proofs are stored.
            accept: Kinds of findings that a proof may ignore, such as ``frame-rate`` or ``subtitles``.
            only: Compare only files in these folders.
            across: Compare only files in different ones of these folders.
            incoming: Compare only the files of these folders with all other files, the library. Library files always
                stay, and the best file of a group is one of them.
            ignore_start, ignore_end: Compare files without this many seconds at their start and end, such as a common
                opening. Proofs still compare whole files, so such files are not removable unless they are whole copies.
            known_only: Only group earlier comparisons; :meth:`uncompared` counts the videos they lack.
            read_files: Open files to determine their traits and the kind of each copy. If False, nothing is stored.
            workers: Number of groups whose files are read at the same time, at least 1; default: one per processor.
                Does not change the result.
            by: Basis of the scores: ``picture``, ``sound``, the higher of the two (``either``) or the lower (``both``).
                Files that match only by sound are doubtful and never removed.
            on_progress: Callback that receives (steps done, total number of steps).
            on_found: Callback that receives preliminary and final groups during the search; see :class:`FoundGroup`.

        Raises:
            InvalidArgumentError: The threshold or the number of workers is out of its range, ``prefer`` or
                ``accept`` has an unknown name, a folder does not exist, both ``across`` and ``incoming`` are given, or
                ``by`` needs sound that the index does not have, or is not ``picture`` while seconds are ignored.
            CollectionMismatchError: The index ranks by kind, so its scores cannot identify copies; or a trained
                comparator scores unrelated videos of the index as high as copies.
        """
        from vidkin.index.duplicates.find import find_duplicates
        from vidkin.index.duplicates.pairing import PairSearch

        ignored = IgnoredEnds(ignore_start, ignore_end)
        if ignored and by != "picture":
            raise InvalidArgumentError(f"by must be 'picture' with ignore_start or ignore_end, got {by!r}")
        scope = Scope.of(only=only, across=across, incoming=incoming)
        self._require_segments()
        self.refresh()
        self._parts.check_scale(threshold)
        files = present_files(self._parts.records())
        state = f"{self._parts.state_of_scores()} {ignored}" if ignored else self._parts.state_of_scores()
        name = Comparisons.FILE_WITHOUT_ENDS if ignored else Comparisons.FILE
        known = Comparisons.open(self.place, state, name)
        if not (read_files and self._remember):
            known.place = None  # a preview must not overwrite results of a simultaneous search
        parts_of_pairs = self.store, self.scorer, known, self._parts.readings()
        search = PairSearch(*parts_of_pairs, sound=self._parts.sound(self.manifest), ignored=ignored)
        search.share_work(None if known_only else self._mapper, self.worker_spec)
        groups = find_duplicates(
            files,
            search,
            Decisions.open(self.place),
            threshold=threshold,
            parts=parts,
            prefer=prefer,
            prove=prove,
            accept=accept,
            scope=scope,
            known_only=known_only,
            read_files=read_files,
            workers=workers,
            by=by,
            on_progress=report_to(on_progress),
            on_found=on_found,
        )
        return Results(groups)

    @one_blas_thread()
    def prove_groups(
        self,
        groups: Iterable[DuplicateGroup],
        *,
        chosen: Iterable[PathLike] | None = None,
        threshold: float = SURE,
        parts: bool = False,
        prefer: str | Sequence[str] = (),
        accept: Collection[FindingKind] = (),
        workers: int | None = None,
        by: By = "picture",
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Results[DuplicateGroup]:
        """Prove by decoding which files of some groups of :meth:`duplicates` can be removed.

        Args:
            groups: The groups; files that are gone, and groups with one file left, are dropped.
            chosen: Only these files may be removed; None for all.
            threshold, parts, prefer, accept, workers, by: As for the search that found the groups.
            on_progress: Callback that receives (steps done, total number of steps). An exception from it ends the work;
                proofs made so far are kept.

        Returns:
            The groups in order; their members state what was proven.
        """
        from vidkin.index.duplicates.find import prove_groups
        from vidkin.index.duplicates.pairing import PairSearch

        self._require_segments()
        self.refresh()
        files = {file.record.path: file for file in present_files(self._parts.records())}
        present = [[files[member.path] for member in group.members if member.path in files] for group in groups]
        known = Comparisons.open(self.place, self._parts.state_of_scores())
        if not self._remember:
            known.place = None
        parts_of_pairs = self.store, self.scorer, known, self._parts.readings()
        search = PairSearch(*parts_of_pairs, sound=self._parts.sound(self.manifest))
        proven = prove_groups(
            [group for group in present if len(group) > 1],
            search,
            Decisions.open(self.place),
            chosen=None if chosen is None else [os.path.abspath(path) for path in chosen],
            threshold=threshold,
            parts=parts,
            prefer=prefer,
            accept=accept,
            workers=workers,
            by=by,
            on_progress=report_to(on_progress),
        )
        return Results(proven)

    @one_blas_thread()
    def coverage(
        self,
        path: PathLike,
        *,
        within: PathLike | None = None,
        threshold: float = EXCERPT,
        candidates: int = 100,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Coverage:
        """Find which parts of a video, which need not be in the index, other videos show, and which are unique.

        Args:
            path: The video; the file itself and files with the same bytes do not count.
            within: Only files in this folder count.
            threshold: Minimum score of a match; below it, the same movements in both files make a match count.
            candidates: As for :meth:`search`, applied to every two minutes of the video.
            on_progress: Callback that receives (steps done, total number of steps).
        """
        from vidkin.index.duplicates.coverage import cover

        self.refresh()
        report = report_to(on_progress)
        query = self._describe(path, None, None, partial(_report_reading, report))
        after = partial(_report_comparing, report)
        return cover(path, self._parts, query, within, threshold, candidates, after, self._ranker)

    @one_blas_thread()
    def recurring(
        self,
        paths: PathLike | Iterable[PathLike] | None = None,
        *,
        least: int = 2,
        shortest: float = 3.0,
        longest: float | None = None,
        inside: bool = False,
        by: By = "picture",
        remember: bool = True,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Results[RecurringGroup]:
        """Find segments that several videos share, such as openings, recaps, bumpers and closings, with exact ends.

        Stored features are compared; only the ends are decoded. Results are stored, even after an interruption. Copies
        of whole videos come last, as groups of kind ``copy``; only the first file of each is compared with others, and
        what it shares is also found in the others.

        Args:
            paths: Only consider these files and files in these folders; default: the whole index.
            least: Minimum number of files that share a segment; with ``inside`` the number of times in one file.
            shortest, longest: Bounds of the length of the longest occurrence, at least 2 s; by default there is no
                upper bound.
            inside: Find segments repeated within each file, such as advertisements in a recording.
            by: ``picture``: segments that look the same; ``sound``: segments that sound the same, whatever they show;
                ``either``: segments found by one of the two; ``both``: segments that look and sound the same.
            remember: Use and store results of earlier calls.
            on_progress: Callback that receives (steps done, total number of steps).

        Raises:
            InvalidArgumentError: A number is out of range, or ``by`` needs sound that the index does not have.
            NotIndexedError: A path is not in the index.
            CollectionMismatchError: The index ranks by kind, so its features cannot identify copies.
        """
        from vidkin.index.recurring.find import Findings, RecurringOptions
        from vidkin.index.recurring.heard import find_recurring_by

        options = RecurringOptions(least, shortest, longest, inside)
        self._require_segments()
        self.refresh()
        records = self._parts.records()
        if paths is not None:
            names = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
            chosen = {record.path for name in names for record in find_records(self.store, name)}
            records = [record for record in records if record.path in chosen]
        state = f"{self.manifest.fingerprint} {self.manifest.sampling_rate!r}"
        findings, sound = Findings.open(self.place, state) if remember else Findings(), self._parts.sound(self.manifest)
        if not self._remember:
            findings.place = None
        report = report_to(on_progress)
        parts = self._parts, self.place, records, findings, options, sound, by, report, self._mapper
        return Results(find_recurring_by(*parts))

    def confirm_recurring(
        self, group: RecurringGroup, *, without: Sequence[Occurrence] = (), wait: float = 5.0
    ) -> None:
        """Store a group of :meth:`recurring` as confirmed, with its ends and name and without some of its
        occurrences."""
        from vidkin.index.recurring.decided import decide_group

        self._check_writable()
        decide_group(self.place, self.store, group, "recurs", without=without, wait=wait)

    def reject_recurring(self, group: RecurringGroup, *, wait: float = 5.0) -> None:
        """Store that a group of :meth:`recurring` is wrong, so that it is not reported again."""
        from vidkin.index.recurring.decided import decide_group

        self._check_writable()
        decide_group(self.place, self.store, group, "does not recur", wait=wait)

    def forget_recurring(self, group: RecurringGroup, *, wait: float = 5.0) -> None:
        """Undo :meth:`confirm_recurring` or :meth:`reject_recurring` of a group."""
        from vidkin.index.recurring.decided import forget_group

        self._check_writable()
        forget_group(self.place, self.store, group, wait=wait)

    def rejected_recurring(self) -> list[RecurringGroup]:
        """Rejected groups of which at least two files are in the index."""
        from vidkin.index.recurring.decided import paths_by_content, rejected_groups

        paths = paths_by_content([record for record in self.videos() if record.status == "ok"])
        return rejected_groups(self.place, paths, len(paths))

    def uncompared(self) -> tuple[int, int]:
        """Number of videos that no search for duplicates has compared yet, and number of videos that can be
        compared."""
        self.refresh()
        known = Comparisons.open(self.place, self._parts.state_of_scores())
        records = [record for record in self.videos() if record.status == "ok" and record.frames]
        contents = {content_of(record) for record in records if not is_gone(record.path)}
        return len(contents - known.searched), len(contents)

    def embeddings(self, pool: str | None = "mean") -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Vectors of all videos, for clustering, plotting, or searching with another library.

        A frame's vector is the descriptor of the whole frame, averaged over its regions to unit length; a video's
        vector is the mean of its frames, weighted by their information, with unit length. Only stored values are read.

        Args:
            pool: ``"mean"`` for one vector per video, None for one per frame.

        Returns:
            Ids of videos [N] int64 in ascending order, repeated for each frame without pooling, and vectors [N, D]
            float32. Videos without frames are omitted; frames without information have zero vectors.

        Raises:
            InvalidArgumentError: ``pool`` has another value.
        """
        check_choice("pool", pool, ("mean", None))
        self.refresh()
        records = [record for record in self.videos() if record.status == "ok" and record.frames]
        return embed_videos(self.store, sorted(record.id for record in records), mean=pool is not None)

    def pairs(self, threshold: float = SURE) -> Results[IndexPair]:
        """Pairs of matching videos from earlier searches for duplicates, best first, with their segments.

        Nothing is compared now: :meth:`duplicates` compares the videos that :meth:`uncompared` counts. Among files with
        the same bytes, the first by name forms a pair of score 1 with each other file and represents them in other
        pairs.

        Args:
            threshold: Drop pairs with a lower score, in [0, 1]; pairs below 0.2, which are unrelated, are not stored.
        """
        check_share(threshold=threshold)
        self.refresh()
        known = Comparisons.open(self.place, self._parts.state_of_scores())
        return Results(known_pairs(known, self.videos(), threshold))

    def on_cluster(self, cluster: str | ClusterSearch) -> Index:
        """Run searches and comparisons on a cluster until the index is closed; results are the same. ``cluster`` is its
        name (``ray:HOST:PORT``), or a shared connection, which stays open.
        """
        from vidkin.index.clusters import open_cluster

        if isinstance(cluster, str):
            cluster = self._cluster = open_cluster(cluster).search(self.place)
        elif not hasattr(cluster, "attach"):
            raise InvalidArgumentError(f"cluster must be the name of a cluster or a connection to one, got {cluster!r}")
        cluster.attach(self.store)
        self._ranker = self._mapper = cluster
        return self

    def recall(
        self,
        *,
        queries: int = 50,
        limit: int = 100,
        seed: int = 0,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> RecallReport:
        """Measure how many matches the first stage misses compared with exhaustive search.

        Args:
            queries: Number of videos of the index to search for.
            limit: Number of candidates of the first stage.
            seed: Seed of the random choice of queries.
            on_progress: Callback that receives (queries done, total number of queries).
        """
        from vidkin.index.query.stage_recall import measure_recall

        self.refresh()
        return measure_recall(
            self.store,
            self.scorer,
            queries=queries,
            limit=limit,
            seed=seed,
            on_progress=report_to(on_progress),
        )

    def confirm(self, first: PathLike, second: PathLike, *, wait: float = 5.0) -> None:
        """Store that two videos of the index match, regardless of their score."""
        self._check_writable()
        decide_pair(self.place, self.store, first, second, "match", wait=wait)

    def reject(self, first: PathLike, second: PathLike, *, wait: float = 5.0) -> None:
        """Store that two videos of the index are not duplicates, regardless of their score."""
        self._check_writable()
        decide_pair(self.place, self.store, first, second, "not a match", wait=wait)

    def forget_decision(self, first: PathLike, second: PathLike, *, wait: float = 5.0) -> None:
        """Undo :meth:`confirm` or :meth:`reject` of two videos."""
        self._check_writable()
        forget_pair(self.place, self.store, first, second, wait=wait)

    def prefer(self, path: PathLike, *, instead_of: Iterable[PathLike] = (), wait: float = 5.0) -> None:
        """Store that a video is the copy to keep, regardless of the rule, instead of these other files."""
        self._check_writable()
        prefer_copy(self.place, self.store, path, instead_of, wait=wait)

    def decisions(self) -> list[Decision]:
        """Confirmed and rejected pairs, with their files."""
        return list_decisions(self.place, self.store)

    def lists(self) -> list[SavedList]:
        """Saved lists of videos (favorites, tags), by name."""
        return read_saved_lists(self.place, self.store)

    def change_list(
        self, name: str, *, add: Iterable[PathLike] = (), remove: Iterable[PathLike] = (), wait: float = 5.0
    ) -> None:
        """Add videos of the index to a list, created if it does not exist, and remove others from it."""
        self._check_writable()
        hashes = [[content_hash_of(self.store, path) for path in paths] for paths in (add, remove)]
        change_saved_list(self.place, name, add=hashes[0], remove=hashes[1], wait=wait)

    def rename_list(self, name: str, new_name: str | None, *, wait: float = 5.0) -> None:
        """Rename a list; None deletes it, its videos stay."""
        self._check_writable()
        rename_saved_list(self.place, name, new_name, wait=wait)

    def videos(self) -> list[VideoRecord]:
        """All records, including broken and stale ones, sorted by path."""
        return self.store.videos()

    def info(self) -> IndexInfo:
        """Statistics of the index."""
        return count_contents(self.place, self.manifest, self.videos())

    def refresh(self) -> bool:
        """Load changes written by other processes; True if there are any."""
        return self._parts.refresh()

    def close(self) -> None:
        """Release memory and files. Waits for a running :meth:`add`, which ends at the next file."""
        self._closing.set()
        if self._adder == threading.get_ident():
            return  # called from its own progress callback; closes at its end
        with self._adding:
            self._release()

    def _release(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
        self._store.close()

    def _closed(self) -> IndexClosedError:
        return IndexClosedError(f"the index {self.place.uri} was closed; open it again with vidkin.Index.open")

    def __reduce__(self) -> NoReturn:
        raise InvalidArgumentError(
            f"an index cannot be sent to another process; open it there: vidkin.Index.open({self.place.uri!r})"
        )

    def __len__(self) -> int:
        return sum(record.status == "ok" for record in self.videos())

    def __iter__(self) -> Iterator[VideoRecord]:
        return (record for record in self.videos() if record.status == "ok")

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str | os.PathLike) and has_record(self.store, path)

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closing.is_set() else f"videos={len(self)}"
        return f"Index({self.place.uri!r}, extractor={self.manifest.extractor!r}, {state})"

    def _describe(
        self,
        path: PathLike,
        start: float | None,
        end: float | None,
        on_share: Callable[[float], None] | None = None,
    ) -> FrameFeatures:
        from vidkin.index.query.query import describe_query

        rate, parts = self.manifest.sampling_rate, self._parts.query_parts
        return describe_query(path, *parts, rate=rate, start=start, end=end, on_share=on_share)

    def _require_segments(self) -> None:
        if not self.scorer.has_segments:
            raise CollectionMismatchError(
                f"{self.place.uri} was made with {self.manifest.extractor}, whose scores order kinds of videos and "
                "cannot identify copies; make another index with --extractor classical"
            )

    def _check_writable(self) -> None:
        if self._closing.is_set():
            raise self._closed()
        if self._read_only:
            raise CollectionError(f"{self.place.uri} was opened read-only; open it with read_only=False to change it")


# Progress steps for reading a query; steps of the comparison follow.
_READING = 100


def _report_reading(report: Callable[[int, int], None], share: float) -> None:
    report(int(_READING * share), _READING + 1)


def _report_comparing(report: Callable[[int, int], None], done: int, total: int) -> None:
    report(_READING + done, _READING + total)


def _seconds(time: float | str | None) -> float | None:
    """Convert a time given by a caller to seconds."""
    return float(Time.parse(time)) if isinstance(time, str) else time
