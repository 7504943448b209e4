"""The class `Index`, the main entry point of the library."""

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
from vidkin.index.duplicates.ignored_ends import IgnoredEnds
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
    resolve_spec,
    save_model_paths,
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
    """A searchable index of videos. Open it with :meth:`open`, for example in a ``with`` statement.

    One process can write at a time; any number can read. A reader sees the state of the index as of when it was opened,
    last searched, or last refreshed with :meth:`refresh`.

    An index is thread-safe. After :meth:`close`, every method raises :class:`~vidkin.errors.IndexClosedError`. Running
    calls can be canceled with :func:`vidkin.stopping_when`, or by raising an exception from their ``on_progress``;
    finished work is saved.

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
        # Id of the thread that is adding files.
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
            path: Folder of the index, or a URL such as ``s3://bucket/films``, which needs the package vidkin-scale.
            extractor: Name of the extractor, see :func:`vidkin.features.open_extractor`; default: the extractor of the
                index, or ``vidkin`` for a new one (``classical`` with a whitening). Raises an error if the index was
                created with a different extractor.
            weights: Safetensors file with the network's weights, for a new index or if the file has moved (the new
                location is saved unless ``read_only``).
            whitening: Safetensors file with the whitening of the features, under the same conditions.
            rate: Sampling rate of ordinary videos in a new index, in frames per second; default 1.
            create: Create the index if it does not exist; otherwise a missing index is an error.
            read_only: Refuse to write, and never create an index.
            remember: Save comparisons made by searches for duplicates and recurring segments in the index, even with
                ``read_only``. With False, no file of the index is changed.
            store: Storage of records, features and windows. For a new index, a name, which cannot be changed later:
                ``disk`` in a folder, or a store from another package, such as ``shards:16`` for millions of videos. Or
                a custom store object: settings, calibration and decisions are still stored at ``path``, so always open
                the index with the same store.
            device: Device for feature extraction: ``cpu``, ``cuda``, ``cuda:1``, or ``auto`` for CUDA if available.

        Raises:
            CollectionNotFoundError: There is no index, and ``create`` is False.
            CollectionMismatchError: The index was created with a different extractor, weights, rate or store.
            CollectionError: The index is damaged or was created by another version of vidkin, or the folder contains
                other files.
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
                f"{place.uri} was created with store {manifest.store}, got {store}; omit the store, or create a new "
                "index"
            )
        spec = resolve_spec(manifest, extractor, weights, whitening, rate, device)
        if store is None or isinstance(store, str):
            store = open_store(place, manifest)
        index = cls(place, manifest, store, spec, read_only=read_only, remember=remember)
        if extractor is not None or weights is not None or whitening is not None:
            # Open the extractor now, so that a wrong one is reported here and not by the first search.
            _logger.debug("%s: features by %s", place.uri, index.extractor.fingerprint)
            if not read_only:
                index.manifest = save_model_paths(place, manifest, spec)
        return index

    @property
    def store(self) -> VectorStore:
        """Store of records, features and windows.

        Raises:
            IndexClosedError: The index was closed.
        """
        if self._closing.is_set():
            raise self._closed_error()
        return self._store

    @property
    def _parts(self) -> SearchParts:
        if self._closing.is_set():
            raise self._closed_error()
        return self._opened_parts

    @cached_property
    def _opened_parts(self) -> SearchParts:
        # Imported late: reading an index needs neither a decoder nor an extractor.
        from vidkin.index.query.query import SearchParts

        def opened() -> FrameExtractor:
            return open_index_extractor(self.place, self.manifest, self.worker_spec)

        return SearchParts(self.place, self.manifest, self._store, opened)

    def use_sound(self, sound: bool, *, wait: float = 0.0) -> None:
        """Turn audio fingerprints on or off; when turned on, the next :meth:`add` rereads files with sound.

        Args:
            sound: Whether to store audio fingerprints.
            wait: Seconds to wait for another writer.
        """
        self._check_writable()
        with self.place.exclusive(wait):
            self.manifest = self.manifest.with_sound(self.place, sound)
        self.worker_spec = replace(self.worker_spec, sound=sound)

    @property
    def path(self) -> Path:
        """Folder of the index.

        Raises:
            CollectionError: The index is on object storage.
        """
        return folder_of(self.place)

    @property
    def extractor_name(self) -> str:
        """Name of the extractor."""
        return self.manifest.extractor

    @property
    def extractor(self) -> FrameExtractor:
        """The extractor, opened on first use because listing videos does not need it."""
        return self._parts.extractor

    @property
    def scorer(self) -> Scorer:
        """The scorer, which computes the score of two videos."""
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

        Each video is saved as soon as it is complete, so after an interruption the next call resumes. Files that cannot
        be read are listed with the cause. If the cause may be temporary (a killed worker, an unresponsive drive, lack
        of memory, or an internal error, whose traceback is in the index's ``errors.log``), the next call retries them.

        Args:
            paths: Folders, files or patterns, see :func:`vidkin.index.ingest.scan.scan`.
            workers: Number of decoding processes; default: one per processor.
            prune: Remove videos in these folders from the index if their files are gone or excluded. If a drive or
                network share may be disconnected, or more than half of the videos would be removed, nothing is removed
                and ``prune_refused`` of the report gives the reason; ``"anyway"`` skips this check.
            exclude, follow_links, images, include_bins: Rules for files in folders, see
                :class:`vidkin.index.FolderRules`; saved in the index. None keeps the current setting.
            on_progress: Callback for each finished file and at intervals in between.
            retry_broken: Read broken files again even if they have not changed.
            wait: Seconds to wait for another writer.
            executor: Extracts the features (see :attr:`worker_spec`); default: processes on this machine.
            found: Result of scanning ``paths``, for callers that scan repeatedly
                (:func:`vidkin.index.watch_folders`); default: scan now.

        Raises:
            CollectionLockedError: Another process is writing. Calls from several threads wait for each other.
            IngestInterrupted: Ctrl-C was pressed; contains the report so far.
            IndexClosedError: Another thread closed the index; completed videos are saved.
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
        """Let one thread add files at a time; afterward, close the index if that was requested in the meantime."""
        with self._adding:
            self._adder = threading.get_ident()
            try:
                yield
            except IngestInterrupted as interrupted:
                if self._closing.is_set():
                    raise self._closed_error() from interrupted
                raise
            finally:
                self._adder = None
                if self._closing.is_set():
                    self._release()

    def _report(self, on_progress: OnProgress | None, progress: Progress) -> None:
        if self._closing.is_set():
            raise KeyboardInterrupt  # stop as for Ctrl-C, saving all completed work
        check_wanted()
        if on_progress is not None:
            on_progress(progress)

    def remove(self, paths: PathLike | Iterable[PathLike], *, wait: float = 0.0) -> int:
        """Remove files and folders from the index until :meth:`add` is called with exactly these paths.

        Adding the parent folder of a removed file does not restore it.

        Args:
            paths: Files and folders.
            wait: Seconds to wait for another writer.

        Returns:
            The number of records removed, including broken files.

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

        An index whose extractor ranks by kind (a trained model) returns scores on the model's own scale and no segments
        (:class:`vidkin.match.KindScorer`). A byte-identical file always scores 1, even if all its frames are black.

        Args:
            query: A video or an image, which need not be in the index, see :data:`vidkin.media.Source`: a path, bytes,
                an open binary file, a PIL image, an array, or frames. If it is an image, segments have zero length in
                the query and give the matching moment in each video.
            start, end: Start and end of the clip to use, in seconds or as ``"1:02:03.5"``.
            frame_rate: Frames per second of an array or an iterator of frames.
            limit: Maximum number of matches.
            offset: Skip this many of the best matches.
            threshold: Drop scores below this; 0.2 drops nearly all unrelated videos.
            candidates: Number of videos to compare exactly; raise it if recall is low (`vidkin doctor --recall`).
            by: Basis of the score: ``picture`` (sound is not read), ``sound``, ``either`` or ``both``. None ranks by
                picture and reports the sound score as well; audio files are ranked by sound.
            own: Whether to report the query itself if it is in the index.
            on_progress: Callback that receives (steps done, total number of steps).

        Raises:
            MediaError: The query cannot be read.
            InvalidArgumentError: A number is out of range.
        """
        from vidkin.index.query.sound import SearchLimits, search_file
        from vidkin.media.sources import open_source

        if offset < 0:
            raise InvalidArgumentError(f"offset must be at least 0, got {offset}")
        start, end = _parse_time(start), _parse_time(end)
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
        """Search for many files, such as all files in the index, one at a time.

        Args:
            queries: Videos and images, which need not be in the index.
            limit, threshold, candidates, by: As for :meth:`search`.
            own: Whether a query that is in the index is reported as a match of itself.
            on_progress: Callback that receives (queries done, total number of queries).

        Yields:
            For each query, in order, its matches, or the error if the file cannot be read.
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
        """Compare a video with one video in the index; the score is the same as that of :func:`vidkin.compare`.

        The target is decoded again at the query's sampling rate, unless its stored features already have this rate
        (videos longer than 60 s) or its file is gone.

        Args:
            query: A video or an image, as for :meth:`search`; it need not be in the index.
            target: A file in the index.
            start, end: Start and end of the query clip to use, in seconds or as ``"1:02:03.5"``.
            frame_rate: Frames per second of an array or an iterator of frames.

        Raises:
            MediaError: The query cannot be read.
            NotIndexedError: The target is not in the index; :func:`vidkin.compare` accepts any two files.
        """
        from vidkin.index.query.sound import add_sound
        from vidkin.index.query.stages import compare_pair
        from vidkin.media.sources import open_source, source_name

        self.refresh()
        record = find_records(self.store, target)[0]
        start, end = _parse_time(start), _parse_time(end)
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

        Pairs with an uncertain score are decoded again and scored as by :func:`vidkin.compare`. Comparisons are saved
        in the index, even if the search is interrupted.

        Args:
            threshold: Minimum score of two videos in a group, in (0, 1].
            parts: Also group excerpts, and videos that share a segment, with the video they match best.
            prefer: Order of preference for the file to keep: columns, each of which breaks ties of the previous ones,
                and folders, whose files are preferred (with the prefix ``outside:``, avoided). Columns not listed
                follow in the order picture, frame-rate, dynamic-range, sound, streams, metadata, bit-rate, size, age;
                newest, longest and smallest are also available.
            prove: Decode the files of all groups to prove which can be removed, see :func:`vidkin.index.plan_removal`.
                Proofs are saved.
            accept: Kinds of findings that a proof may ignore, such as ``frame-rate`` or ``subtitles``.
            only: Compare only files in these folders.
            across: Compare only files from different folders in this list.
            incoming: Compare only files in these folders with all other files, the library. Library files are never
                removed, and the best file of each group is one of them.
            ignore_start, ignore_end: Compare files without this many seconds at their start and end, such as a common
                opening. Proofs still compare whole files, so such files are not removable unless they are whole copies.
            known_only: Only group earlier comparisons; :meth:`uncompared` counts the videos not yet compared.
            read_files: Open files to determine their traits and the kind of each copy. With False, nothing is saved.
            workers: Number of groups whose files are read in parallel, at least 1; default: one per processor. Does not
                affect the result.
            by: Basis of the scores: ``picture``, ``sound``, the higher of the two (``either``) or the lower (``both``).
                Files that match only by sound are doubtful and never removed.
            on_progress: Callback that receives (steps done, total number of steps).
            on_found: Callback that receives preliminary and final groups during the search; see :class:`FoundGroup`.

        Raises:
            InvalidArgumentError: The threshold or the number of workers is out of range, ``prefer`` or ``accept``
                contains an unknown name, a folder does not exist, both ``across`` and ``incoming`` are given, or ``by``
                needs audio fingerprints that the index does not have, or is not ``picture`` while seconds are ignored.
            CollectionMismatchError: The index ranks by kind, so its scores cannot identify copies; or its trained
                comparator scores unrelated videos as high as copies.
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
        """Decode the files of duplicate groups to prove which of them can be removed.

        Args:
            groups: Groups from :meth:`duplicates`; files that are gone, and groups with one file left, are dropped.
            chosen: Only these files may be removed; None for all.
            threshold, parts, prefer, accept, workers, by: As for the search that found the groups.
            on_progress: Callback that receives (steps done, total number of steps). An exception from it stops the
                work; proofs made so far are saved.

        Returns:
            The groups, in order, whose members contain the results of the proofs.
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
        """Find which parts of a video also occur in other videos, and which are unique.

        Args:
            path: The video, which need not be in the index; the file itself and byte-identical files are ignored.
            within: Only consider files in this folder.
            threshold: Minimum score of a match; below it, a match counts if the same movements occur in both files.
            candidates: As for :meth:`search`, for each two-minute chunk of the video.
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

        Stored features are compared; only the ends of segments are decoded. Results are saved, even if the search is
        interrupted. Copies of whole videos come last, as groups of kind ``copy``; only the first file of each group is
        compared with other videos, and its segments are then located in the others.

        Args:
            paths: Only consider these files and files in these folders; default: the whole index.
            least: Minimum number of files that share a segment; with ``inside``, the number of occurrences in one file.
            shortest, longest: Bounds on the duration of the longest occurrence in seconds; ``shortest`` must be at
                least 2, and by default there is no upper bound.
            inside: Find segments repeated within a file, such as advertisements in a recording.
            by: ``picture``: segments that look the same; ``sound``: segments that sound the same, whatever they show;
                ``either``: segments found by either; ``both``: segments that look and sound the same.
            remember: Use and save cached results.
            on_progress: Callback that receives (steps done, total number of steps).

        Raises:
            InvalidArgumentError: A number is out of range, or ``by`` needs audio fingerprints that the index does not
                have.
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
        """Save a group from :meth:`recurring` as confirmed, with its current ends and name.

        Args:
            group: The group.
            without: Occurrences to leave out.
            wait: Seconds to wait for another writer.
        """
        from vidkin.index.recurring.decided import decide_group

        self._check_writable()
        decide_group(self.place, self.store, group, "recurs", without=without, wait=wait)

    def reject_recurring(self, group: RecurringGroup, *, wait: float = 5.0) -> None:
        """Save a group from :meth:`recurring` as wrong, so that it is not reported again."""
        from vidkin.index.recurring.decided import decide_group

        self._check_writable()
        decide_group(self.place, self.store, group, "does not recur", wait=wait)

    def forget_recurring(self, group: RecurringGroup, *, wait: float = 5.0) -> None:
        """Undo :meth:`confirm_recurring` or :meth:`reject_recurring` for a group."""
        from vidkin.index.recurring.decided import forget_group

        self._check_writable()
        forget_group(self.place, self.store, group, wait=wait)

    def rejected_recurring(self) -> list[RecurringGroup]:
        """Rejected groups with at least two files still in the index."""
        from vidkin.index.recurring.decided import paths_by_content, rejected_groups

        paths = paths_by_content([record for record in self.videos() if record.status == "ok"])
        return rejected_groups(self.place, paths, len(paths))

    def uncompared(self) -> tuple[int, int]:
        """Return the number of videos not yet compared by a duplicate search, and the number that can be compared."""
        self.refresh()
        known = Comparisons.open(self.place, self._parts.state_of_scores())
        records = [record for record in self.videos() if record.status == "ok" and record.frames]
        contents = {content_of(record) for record in records if not is_gone(record.path)}
        return len(contents - known.searched), len(contents)

    def embeddings(self, pool: str | None = "mean") -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Embeddings of all videos, for clustering, plotting, or searching with another library.

        A frame's embedding is the mean of its whole-frame region descriptors, normalized to unit length; a video's
        embedding is the normalized mean of its frame embeddings, weighted by information. Nothing is decoded.

        Args:
            pool: ``"mean"`` for one vector per video, None for one per frame.

        Returns:
            Video ids [N] int64 in ascending order (without pooling, repeated for each frame), and vectors [N, D]
            float32. Videos without frames are omitted; frames without information have zero vectors.

        Raises:
            InvalidArgumentError: ``pool`` is neither ``"mean"`` nor None.
        """
        check_choice("pool", pool, ("mean", None))
        self.refresh()
        records = [record for record in self.videos() if record.status == "ok" and record.frames]
        return embed_videos(self.store, sorted(record.id for record in records), mean=pool is not None)

    def pairs(self, threshold: float = SURE) -> Results[IndexPair]:
        """Matching pairs from earlier duplicate searches, best first, with their segments.

        No new comparisons are made; :meth:`duplicates` compares the videos that :meth:`uncompared` counts. Among
        byte-identical files, the first by name is paired with each of the others at score 1, and represents them in all
        other pairs.

        Args:
            threshold: Drop pairs with a lower score, in [0, 1]; pairs below 0.2 are unrelated and not saved.
        """
        check_share(threshold=threshold)
        self.refresh()
        known = Comparisons.open(self.place, self._parts.state_of_scores())
        return Results(known_pairs(known, self.videos(), threshold))

    def on_cluster(self, cluster: str | ClusterSearch) -> Index:
        """Run searches and comparisons on a cluster until the index is closed; the results do not change.

        Args:
            cluster: Name of the cluster (``ray:HOST:PORT``), or a shared connection, which :meth:`close` leaves open.
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
        """Measure the recall of the first search stage against exhaustive search.

        Args:
            queries: Number of indexed videos to use as queries.
            limit: Number of candidates from the first stage.
            seed: Random seed for choosing the queries.
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
        """Mark two videos in the index as a match, regardless of their score."""
        self._check_writable()
        decide_pair(self.place, self.store, first, second, "match", wait=wait)

    def reject(self, first: PathLike, second: PathLike, *, wait: float = 5.0) -> None:
        """Mark two videos in the index as not duplicates, regardless of their score."""
        self._check_writable()
        decide_pair(self.place, self.store, first, second, "not a match", wait=wait)

    def forget_decision(self, first: PathLike, second: PathLike, *, wait: float = 5.0) -> None:
        """Undo :meth:`confirm` or :meth:`reject` for two videos."""
        self._check_writable()
        forget_pair(self.place, self.store, first, second, wait=wait)

    def prefer(self, path: PathLike, *, instead_of: Iterable[PathLike] = (), wait: float = 5.0) -> None:
        """Mark a video as the copy to keep instead of the given files, regardless of the order of preference."""
        self._check_writable()
        prefer_copy(self.place, self.store, path, instead_of, wait=wait)

    def decisions(self) -> list[Decision]:
        """User decisions: confirmed and rejected pairs with their files."""
        return list_decisions(self.place, self.store)

    def lists(self) -> list[SavedList]:
        """Saved lists of videos (favorites, tags), sorted by name."""
        return read_saved_lists(self.place, self.store)

    def change_list(
        self, name: str, *, add: Iterable[PathLike] = (), remove: Iterable[PathLike] = (), wait: float = 5.0
    ) -> None:
        """Add indexed videos to a list and remove others from it; the list is created if it does not exist."""
        self._check_writable()
        hashes = [[content_hash_of(self.store, path) for path in paths] for paths in (add, remove)]
        change_saved_list(self.place, name, add=hashes[0], remove=hashes[1], wait=wait)

    def rename_list(self, name: str, new_name: str | None, *, wait: float = 5.0) -> None:
        """Rename a list; with None, delete the list but not its videos."""
        self._check_writable()
        rename_saved_list(self.place, name, new_name, wait=wait)

    def videos(self) -> list[VideoRecord]:
        """All records, including broken and stale ones, sorted by path."""
        return self.store.videos()

    def info(self) -> IndexInfo:
        """Statistics of the index."""
        return count_contents(self.place, self.manifest, self.videos())

    def refresh(self) -> bool:
        """Load changes written by other processes; return whether there were any."""
        return self._parts.refresh()

    def close(self) -> None:
        """Release memory and files. Waits for a running :meth:`add`, which stops after the current file."""
        self._closing.set()
        if self._adder == threading.get_ident():
            return  # called from the progress callback of `add`, which closes the index when it returns
        with self._adding:
            self._release()

    def _release(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
        self._store.close()

    def _closed_error(self) -> IndexClosedError:
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
                f"{self.place.uri} was created with {self.manifest.extractor}, whose scores rank videos by kind and "
                "cannot identify copies; create another index with --extractor classical"
            )

    def _check_writable(self) -> None:
        if self._closing.is_set():
            raise self._closed_error()
        if self._read_only:
            raise CollectionError(f"{self.place.uri} was opened read-only; open it with read_only=False to change it")


# Number of progress steps reserved for reading the query; the comparison adds its own steps.
_READING = 100


def _report_reading(report: Callable[[int, int], None], share: float) -> None:
    report(int(_READING * share), _READING + 1)


def _report_comparing(report: Callable[[int, int], None], done: int, total: int) -> None:
    report(_READING + done, _READING + total)


def _parse_time(time: float | str | None) -> float | None:
    """Parse a time argument into seconds."""
    return float(Time.parse(time)) if isinstance(time, str) else time
