"""The index of videos: the class that most programs use."""

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
from vidkin.similarity import EXCERPT, SURE, Scorer

if TYPE_CHECKING:
    from vidkin.files.findings import FindingKind
    from vidkin.index.clusters import ClusterSearch
    from vidkin.index.duplicates.coverage import Coverage
    from vidkin.index.duplicates.members import DuplicateGroup, FoundGroup
    from vidkin.index.ingest.executor import Executor
    from vidkin.index.ingest.pruning import Prune
    from vidkin.index.ingest.report import IngestReport, OnProgress
    from vidkin.index.query.query import Query, SearchParts
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
    """A searchable collection of videos. Open it with :meth:`open`; a context manager.

    One process writes at a time, any number read; a reader sees what was complete when it opened, last
    searched or last called :meth:`refresh`.

    Any number of threads may use it. After :meth:`close` every method raises
    :class:`~vidkin.errors.IndexClosedError`. Whatever runs can be canceled with :func:`vidkin.stopping_when`, and by
    what its ``on_progress`` raises; what was complete stays.

    Attributes:
        place: Place of the index: a folder, or a prefix on object storage.
        manifest: Settings that the index was made with.
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
            extractor: Name of what makes the features, see :func:`vidkin.features.open_extractor`; default that of the
                index, ``vidkin`` for a new one (``classical`` with a whitening). One that it does not have is an error.
            weights: The network's weights, a safetensors file; for a new index, or where the file moved (which
                is remembered unless ``read_only``).
            whitening: Safetensors file with the whitening of the features, under the same conditions.
            rate: Frames per second that a new index has of ordinary videos, default 1.
            create: Make the index if there is none; without it a missing index is an error.
            read_only: Refuse to write; never makes an index.
            remember: Keep in the index what searches for copies and for what recurs have compared, also with
                ``read_only``; False changes no file of it.
            store: Keeps records, features and windows. The name of what a new index has (it never changes): ``disk``
                in a folder, or what another package brings, such as ``shards:16`` for collections of millions. Or a
                store of your own: settings, calibration and decisions are at ``path`` in any case, so always open an
                index with the store that it was filled with.
            device: Where video is described: ``cpu``, ``cuda``, ``cuda:1``, ``auto``: CUDA if it is there.

        Raises:
            CollectionNotFoundError: There is no index, and ``create`` is False.
            CollectionMismatchError: It was made with a different extractor, weights, rate or store.
            CollectionError: It is damaged or was made by another version of vidkin, or the folder holds other files.
            ExtractorError: The extractor cannot be opened.
        """
        place = open_place(path)
        named = (DISK if place.folder is not None else "lance") if store is None else store
        if create and not read_only and not Manifest.exists(place):
            made = resolve_spec(None, extractor, weights, whitening, rate, device)
            if isinstance(named, str):
                create_index(place, made, store=named, distinct=find_store_kind(named, place).distinct)
            else:
                create_index(place, made, whiten=False)
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
            # A wrong extractor is an error here and not in the first search.
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
        # Reading an index needs neither a decoder nor an extractor.
        from vidkin.index.query.query import SearchParts

        def opened() -> FrameExtractor:
            return open_index_extractor(self.place, self.manifest, self.worker_spec)

        return SearchParts(self.place, self.manifest, self._store, opened)

    def use_sound(self, sound: bool, *, wait: float = 0.0) -> None:
        """Describe the sound of files from now on, or no longer; the next :meth:`add` reads again what has sound."""
        self._check_writable()
        with self.place.exclusive(wait):
            self.manifest = self.manifest.with_sound(self.place, sound)
        self.worker_spec = replace(self.worker_spec, sound=sound)

    @property
    def path(self) -> Path:
        """Its folder; :class:`CollectionError` where it is on object storage."""
        return folder_of(self.place)

    @property
    def extractor_name(self) -> str:
        """Name of what makes the features."""
        return self.manifest.extractor

    @property
    def extractor(self) -> FrameExtractor:
        """What makes the features; opened on first use, as reading lists needs none."""
        return self._parts.extractor

    @property
    def scorer(self) -> Scorer:
        """What turns two videos into a score."""
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
        """Bring the index up to date with folders and files; only new and changed files are read.

        Each video is written when it is complete: interrupted at any point, the next call resumes from there. A file
        that cannot be read is listed with its cause; where the cause may pass (a killed worker, a hung drive, no
        memory, an internal error, whose traceback is in ``errors.log`` of the index) the next call reads it again.

        Args:
            paths: Folders, files or patterns, see :func:`vidkin.index.ingest.scan.scan`.
            workers: Number of processes that decode; default one per processor.
            prune: Remove videos of these folders from the index whose files are gone or excluded. If their drive or
                share may not be connected, or more than half would go, ``prune_refused`` of the report says so and
                nothing is removed; ``"anyway"`` removes them.
            exclude, follow_links, images, include_bins: Which files of folders to take, see
                :class:`vidkin.index.FolderRules`; remembered. None leaves each as it was.
            on_progress: Callback for each finished file and at intervals in between.
            retry_broken: Also read broken files again that have not changed.
            wait: Seconds to wait for another writer.
            executor: Makes the features (see :attr:`worker_spec`); default processes of this machine.
            found: What was found at ``paths`` by whoever looks at them again and again
                (:func:`vidkin.index.watch_folders`); default: they are scanned.

        Raises:
            CollectionLockedError: Another process is writing. Calls of several threads wait for each other.
            IngestInterrupted: On Ctrl-C, with the report so far.
            IndexClosedError: Another thread closed the index; what was complete is in it.
        """
        from vidkin.index.ingest.processes import ProcessExecutor
        from vidkin.index.ingest.update import update_index

        self._check_writable()
        if executor is None:
            executor = ProcessExecutor(self.worker_spec, workers=workers)
        rules = self.manifest.rules.changed(exclude, follow_links, images, include_bins)
        files = found or scan([paths] if isinstance(paths, str | os.PathLike) else paths, rules)
        with self._while_adding(), self.place.exclusive(wait):
            self.manifest = self.manifest.with_rules(self.place, rules)
            return update_index(
                self.place,
                self.manifest,
                self.store,
                files,
                executor,
                calibrate=self._parts.calibration.calibrate,
                update_parts=self._parts.update,
                prune=prune,
                retry_broken=retry_broken,
                on_progress=partial(self._report, on_progress),
            )

    @contextmanager
    def _while_adding(self) -> Iterator[None]:
        """Makes other threads that add files wait, and closes the index at the end if one wanted to."""
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
            raise KeyboardInterrupt  # ends as Ctrl-C does, with everything written that is complete
        check_wanted()
        if on_progress is not None:
            on_progress(progress)

    def remove(self, paths: PathLike | Iterable[PathLike], *, wait: float = 0.0) -> int:
        """Remove files, and all files in folders, until :meth:`add` names them again.

        Adding the folder of a removed file does not bring it back. Returns the number of records removed, including
        those of broken files.

        Args:
            paths: Files and folders.
            wait: Seconds to wait for another writer.

        Raises:
            NotIndexedError: One of the paths is not in the index; then nothing is removed.
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
        mirrored: bool = True,
        candidates: int = 100,
        by: By | None = None,
        own: bool = True,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Results[Match]:
        """The videos of the index that match a query, best first, and where.

        An index made with a trained model ranks by kind instead, with scores of its own and without segments
        (:class:`vidkin.similarity.KindScorer`). A file with the same bytes always scores 1, even one of black frames.

        Args:
            query: A video or an image, which need not be in the index, see :data:`vidkin.media.Source`: a path, bytes,
                an open binary file, a PIL image, an array, frames. A picture has segments without length in the query,
                which show the moment of each video that it is from.
            start, end: Limits of the stretch to use, in seconds or as ``"1:02:03.5"``.
            frame_rate: Frames per second of an array or an iterator of frames.
            limit: Maximum number of matches.
            offset: Skip this many of the best ones.
            threshold: Leave out scores below this; 0.2 leaves out nearly all that is unrelated.
            mirrored: Also find mirrored copies; takes about twice as long.
            candidates: Number of videos compared exactly; raise it if recall is low (`vidkin doctor`).
            by: What the score is made of: ``picture`` (reads no sound), ``sound``, ``either`` or ``both``. None: the
                picture, with what the sound says beside it; of a file of sound alone its sound.
            own: Whether the query itself is a match, if it is a file of the index.
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
            describe = partial(self._describe, path, start, end, mirrored, partial(_report_reading, report))
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
        mirrored: bool = True,
        candidates: int = 100,
        by: By | None = None,
        own: bool = False,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Iterator[Results[Match] | MediaError]:
        """Search for many files, such as all of the index, one after the other.

        Args:
            queries: Videos and images, which need not be in the index.
            limit, threshold, mirrored, candidates, by: As for :meth:`search`.
            own: Whether each file of the index is a match of itself.
            on_progress: Callback that receives (queries done, total number of queries).

        Yields:
            For each query, in their order, its matches, or the error of a file that cannot be read.
        """
        report, names = report_to(on_progress), list(queries)
        for done, query in enumerate(names, start=1):
            try:
                yield self.search(
                    query,
                    limit=limit,
                    threshold=threshold,
                    mirrored=mirrored,
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
        mirrored: bool = True,
    ) -> Comparison:
        """Compare a video with one video of the index; the same score as :func:`vidkin.compare`.

        The video is read again as finely as the query. What the index holds of it is used where that is as fine (videos
        of more than 60 s) or where the file is gone.

        Args:
            query: A video or an image, as for :meth:`search`; it need not be in the index.
            target: A file of the index.
            start, end: Limits of the stretch of the query to use, in seconds or as ``"1:02:03.5"``.
            frame_rate: Frames per second of an array or an iterator of frames.
            mirrored: Also compare either one flipped left to right.

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
            described = self._describe(path, start, end, mirrored)
            readings = self._parts.readings()
            again = mirrored and not readings.is_stored_as_finely(record)
            compared = compare_pair(described, readings.finest(record, mirrored=again), self.scorer)
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
        mirrored: bool = True,
        prefer: str | Sequence[str] = (),
        prove: bool = False,
        accept: Collection[FindingKind] = (),
        only: PathLike | Sequence[PathLike] = (),
        across: Sequence[PathLike] = (),
        incoming: PathLike | Sequence[PathLike] = (),
        known_only: bool = False,
        read_files: bool = True,
        workers: int | None = None,
        by: By = "picture",
        on_progress: Callable[[int, int], None] | None = None,
        on_found: Callable[[FoundGroup], None] | None = None,
    ) -> Results[DuplicateGroup]:
        """Find groups of videos that hold the same material, without comparing all pairs.

        Pairs in doubt are read again and get the score of :func:`vidkin.compare`. What was compared is remembered in
        the folder, also when this is interrupted.

        Args:
            threshold: Score from which on two videos belong together, in (0, 1].
            parts: Also group excerpts, and videos that share a part, with the video they match best.
            mirrored: Also find copies that were flipped left to right, or turned by 90, 180 or 270 degrees; reads the
                files that may be such copies once.
            prefer: Which of the files that could stay is the best: columns, of which each decides between files that
                those before it leave equal, or folders whose files come first (after ``outside:``, last). Those not
                named follow in the order picture, frame-rate, dynamic-range, sound, streams, metadata, bit-rate, size,
                age; also known are newest, longest and smallest.
            prove: Decode the files of all groups, to prove what can be removed; see
                :func:`vidkin.index.plan_removal`. What was proven once is remembered.
            accept: Kinds of findings of a proof that do not matter, such as ``frame-rate`` or ``subtitles``.
            only: Compare only files in these folders.
            across: Compare only files of one of these folders with files of another one.
            incoming: Compare only the files of these folders with all others, which are the library; its files always
                stay, and the best of a group is one of them.
            known_only: Only group what earlier searches compared; :meth:`uncompared` says how much they left.
            read_files: Open files for their traits and the kind of each copy. Otherwise nothing is stored.
            workers: Number of groups whose files are read at the same time, at least 1; default one for each processor.
                The answers are the same.
            by: What scores are made of: ``picture``, ``sound``, the higher of the two (``either``) or the lower
                (``both``). What only the sound shows to be the same is in doubt, and never removed.
            on_progress: Callback that receives (steps done, total number of steps).
            on_found: Callback that receives groups while pairs are compared, and as they stay; see :class:`FoundGroup`.

        Raises:
            InvalidArgumentError: The threshold or the number of workers is out of its range, ``prefer`` or
                ``accept`` has an unknown name, a folder does not exist, both ``across`` and ``incoming`` are given, or
                ``by`` asks for sound that the index does not have.
            CollectionMismatchError: The index ranks by kind, and its scores do not tell copies from other videos; or a
                trained comparator gives unrelated videos of the index such scores.
        """
        from vidkin.index.duplicates.find import find_duplicates
        from vidkin.index.duplicates.pairing import PairSearch

        scope = Scope.of(only=only, across=across, incoming=incoming)
        self._require_segments()
        self.refresh()
        self._parts.check_scale(threshold)
        files = present_files(self._parts.records())
        known = Comparisons.open(self.place, self._parts.state_of_scores())
        if not (read_files and self._remember):
            known.place = None  # a preview writes nothing over what a search stores at the same time
        parts_of_pairs = self.store, self._parts.common, self.scorer, known, self._parts.readings()
        search = PairSearch(*parts_of_pairs, mirrored=mirrored, sound=self._parts.sound(self.manifest))
        search.compute_ahead(None if known_only else self._mapper, self.worker_spec)
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
        """Prove, by decoding their files, what can be removed of some groups of :meth:`duplicates`.

        Args:
            groups: The groups; a file that is gone by now, and a group of which one file is left, are left out.
            chosen: Only these files may be removed; all others stay. None for all.
            threshold, parts, prefer, accept, workers, by: As for the search that found the groups.
            on_progress: Callback that receives (steps done, total number of steps). What it raises ends the work; what
                was proven until then is remembered.

        Returns:
            The groups in their order; their members say what is proven of them.
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
        parts_of_pairs = self.store, self._parts.common, self.scorer, known, self._parts.readings()
        search = PairSearch(*parts_of_pairs, sound=self._parts.sound(self.manifest))
        search.compute_ahead(None, self.worker_spec)
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
        mirrored: bool = True,
        candidates: int = 100,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Coverage:
        """Find which stretches of a video (it need not be in the index) exist in others, and what is only in it.

        Args:
            path: The video; itself and files with the same bytes do not count.
            within: Only files in this folder count.
            threshold: Score from which on a match counts.
            mirrored, candidates: As for :meth:`search`, for each two minutes of the video.
            on_progress: Callback that receives (steps done, total number of steps).
        """
        from vidkin.index.duplicates.coverage import cover

        self.refresh()
        report = report_to(on_progress)
        query = self._describe(path, None, None, mirrored, partial(_report_reading, report))
        after = partial(_report_after, report)
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
        """Find stretches that several videos share: openings, recaps, bumpers, closings; and where they begin and end.

        Stored features are compared; only the ends are decoded. What was found is remembered, also when interrupted.
        Whole copies of a video are the last groups, of kind ``copy``; only the first of them is compared with others.

        Args:
            paths: Only look at these files and at the files in these folders; default all of the index.
            least: Number of files that have a stretch at least; with ``inside`` number of times in one file.
            shortest, longest: Length of the longest occurrence in seconds, from 2 s on; default any up to the whole.
            inside: Look for what one file shows again, such as advertisements in a recording, file by file.
            by: ``picture``: what is seen again; ``sound``: what is heard again, whatever is seen; ``either``: what
                one of both finds; ``both``: what is seen again with the same sound.
            remember: Use and keep what earlier calls have found.
            on_progress: Callback that receives (steps done, total number of steps).

        Raises:
            InvalidArgumentError: A number is out of its range, or ``by`` asks for sound that the index does not have.
            NotIndexedError: One of the paths is not in the index.
            CollectionMismatchError: The index ranks by kind, and its features do not tell copies from other videos.
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
        """Remember a group of :meth:`recurring` with the ends and the name that it has, and without some that were
        found with it; from now on its frames have no weight in scores, also where only two files have it."""
        from vidkin.index.recurring.decided import decide_group

        self._check_writable()
        decide_group(self.place, self.store, group, "recurs", without=without, wait=wait)

    def reject_recurring(self, group: RecurringGroup, *, wait: float = 5.0) -> None:
        """Remember that a group of :meth:`recurring` is none: it is left out."""
        from vidkin.index.recurring.decided import decide_group

        self._check_writable()
        decide_group(self.place, self.store, group, "does not recur", wait=wait)

    def forget_recurring(self, group: RecurringGroup, *, wait: float = 5.0) -> None:
        """Undo :meth:`confirm_recurring` or :meth:`reject_recurring` of a group."""
        from vidkin.index.recurring.decided import forget_group

        self._check_writable()
        forget_group(self.place, self.store, group, wait=wait)

    def rejected_recurring(self) -> list[RecurringGroup]:
        """The groups of :meth:`reject_recurring`, as far as two of their files are in the index."""
        from vidkin.index.recurring.decided import paths_by_content, rejected_groups

        paths = paths_by_content([record for record in self.videos() if record.status == "ok"])
        return rejected_groups(self.place, paths, len(paths))

    def uncompared(self) -> tuple[int, int]:
        """Number of videos that no search for duplicates has compared yet, and of all that can be compared."""
        self.refresh()
        known = Comparisons.open(self.place, self._parts.state_of_scores())
        records = [record for record in self.videos() if record.status == "ok" and record.frames]
        contents = {content_of(record) for record in records if not is_gone(record.path)}
        return len(contents - known.searched), len(contents)

    def embeddings(self, pool: str | None = "mean") -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Vectors of all videos, to cluster them, draw them, or search them with another library.

        Of each frame the descriptor of the whole picture, averaged over its regions to one unit vector; of a video the
        mean of its frames, weighted by how much they show, with length 1. Stored values are read, and no files.

        Args:
            pool: ``"mean"`` for a vector of each video, None for one of each frame.

        Returns:
            Ids of videos [N] int64, rising, as :meth:`videos` has them (several times without pooling), and vectors
            [N, D] float32. Videos without frames have none, and frames that show nothing have zeros.

        Raises:
            InvalidArgumentError: ``pool`` is something else.
        """
        check_choice("pool", pool, ("mean", None))
        self.refresh()
        records = [record for record in self.videos() if record.status == "ok" and record.frames]
        return embed_videos(self.store, sorted(record.id for record in records), mean=pool is not None)

    def pairs(self, threshold: float = SURE) -> Results[IndexPair]:
        """The pairs of videos that earlier searches for duplicates found, best first, with where they match.

        Nothing is compared: :meth:`duplicates` compares what :meth:`uncompared` counts. Of files with the same bytes
        the first by name is a pair with each of the others, with a score of 1, and stands for them in other pairs.

        Args:
            threshold: Leave out pairs with a lower score, in [0, 1]; those below 0.2, which are unrelated, are not
                stored.
        """
        check_share(threshold=threshold)
        self.refresh()
        known = Comparisons.open(self.place, self._parts.state_of_scores())
        return Results(known_pairs(known, self.videos(), threshold))

    def on_cluster(self, cluster: str | ClusterSearch) -> Index:
        """Search and compare on the machines of a cluster until this is closed; the answers are the same.
        ``cluster`` is its name (``ray:HOST:PORT``), or a connection that others use as well and that stays open.
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
        """Measure how much the first stage misses compared with exhaustive search.

        Args:
            queries: Number of videos of the index that are searched for.
            limit: Number of candidates of the first stage.
            seed: Seed of the random choice of queries.
            on_progress: Callback that receives (queries done, total number of queries).
        """
        from vidkin.index.query.stage_recall import measure_recall

        self.refresh()
        return measure_recall(
            self.store,
            self._parts.common,
            self.scorer,
            queries=queries,
            limit=limit,
            seed=seed,
            on_progress=report_to(on_progress),
        )

    def confirm(self, first: PathLike, second: PathLike, *, wait: float = 5.0) -> None:
        """Remember that two videos of the index match, whatever their score."""
        self._check_writable()
        decide_pair(self.place, self.store, first, second, "match", wait=wait)

    def reject(self, first: PathLike, second: PathLike, *, wait: float = 5.0) -> None:
        """Remember that two videos of the index are not duplicates, whatever their score."""
        self._check_writable()
        decide_pair(self.place, self.store, first, second, "not a match", wait=wait)

    def forget_decision(self, first: PathLike, second: PathLike, *, wait: float = 5.0) -> None:
        """Undo :meth:`confirm` or :meth:`reject` of two videos."""
        self._check_writable()
        forget_pair(self.place, self.store, first, second, wait=wait)

    def prefer(self, path: PathLike, *, instead_of: Iterable[PathLike] = (), wait: float = 5.0) -> None:
        """Remember that a video is the copy to keep, whatever the rule, and that these others are not."""
        self._check_writable()
        prefer_copy(self.place, self.store, path, instead_of, wait=wait)

    def decisions(self) -> list[Decision]:
        """Confirmed and rejected pairs, with their files."""
        return list_decisions(self.place, self.store)

    def lists(self) -> list[SavedList]:
        """Lists of videos that people keep (favorites, tags), by name."""
        return read_saved_lists(self.place, self.store)

    def change_list(
        self, name: str, *, add: Iterable[PathLike] = (), remove: Iterable[PathLike] = (), wait: float = 5.0
    ) -> None:
        """Add videos of the index to a list, which is made if there is none, and take others off it."""
        self._check_writable()
        hashes = [[content_hash_of(self.store, path) for path in paths] for paths in (add, remove)]
        change_saved_list(self.place, name, add=hashes[0], remove=hashes[1], wait=wait)

    def rename_list(self, name: str, new_name: str | None, *, wait: float = 5.0) -> None:
        """Give a list another name; None drops it, its videos stay."""
        self._check_writable()
        rename_saved_list(self.place, name, new_name, wait=wait)

    def videos(self) -> list[VideoRecord]:
        """All records, broken and stale ones too, sorted by path."""
        return self.store.videos()

    def info(self) -> IndexInfo:
        """Numbers about the index."""
        return count_contents(self.place, self.manifest, self.videos())

    def refresh(self) -> bool:
        """Load what other processes have written since; True if there is something new."""
        return self._parts.refresh()

    def close(self) -> None:
        """Release memory and files. A running :meth:`add` ends first, at the next file: this waits for it."""
        self._closing.set()
        if self._adder == threading.get_ident():
            return  # called by its progress: it closes when it has ended
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
        mirrored: bool,
        on_share: Callable[[float], None] | None = None,
    ) -> Query:
        from vidkin.index.query.query import describe_query

        rate, parts = self.manifest.sampling_rate, self._parts.of_queries
        return describe_query(path, *parts, rate=rate, start=start, end=end, mirrored=mirrored, on_share=on_share)

    def _require_segments(self) -> None:
        if not self.scorer.has_segments:
            raise CollectionMismatchError(
                f"{self.place.uri} was made with {self.manifest.extractor}, whose scores order kinds of videos and "
                "do not tell copies from what is merely similar; make another index with --extractor classical"
            )

    def _check_writable(self) -> None:
        if self._closing.is_set():
            raise self._closed()
        if self._read_only:
            raise CollectionError(f"{self.place.uri} was opened read-only; open it with read_only=False to change it")


# Steps of reading a query; what is compared with it follows.
_READING = 100


def _report_reading(report: Callable[[int, int], None], share: float) -> None:
    report(int(_READING * share), _READING + 1)


def _report_after(report: Callable[[int, int], None], done: int, total: int) -> None:
    report(_READING + done, _READING + total)


def _seconds(time: float | str | None) -> float | None:
    """The seconds of a time as a caller may write it."""
    return float(Time.parse(time)) if isinstance(time, str) else time
