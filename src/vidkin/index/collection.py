"""A collection of videos on disk that can be searched: the class that most programs use."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from vidkin.errors import CollectionError, InvalidArgumentError, NotIndexedError, UnknownExtractorError
from vidkin.index.info import IndexInfo, collection_info
from vidkin.index.ingest.processes import ProcessExecutor, usable_processors
from vidkin.index.ingest.report import IngestInterrupted, IngestReport, OnProgress
from vidkin.index.ingest.scan import scan
from vidkin.index.ingest.session import ingest
from vidkin.index.ingest.worker import WorkerSpec
from vidkin.index.lock import writer_lock
from vidkin.index.manifest import Manifest, create_collection
from vidkin.index.search.calibration import Calibration
from vidkin.index.search.searcher import SearchingIndex
from vidkin.index.storage.contract import VideoRecord
from vidkin.index.storage.lance import LanceStore

if TYPE_CHECKING:
    from vidkin.features import FrameExtractor
    from vidkin.index.ingest.executor import Executor

__all__ = ["Index"]

PathLike = str | os.PathLike[str]


class Index(SearchingIndex):
    """Videos that can be searched. Made by :meth:`open`; a context manager.

    One process writes at a time, any number read; a reader sees what was complete when it opened or last
    called :meth:`refresh`.

    Attributes:
        path: The folder.
        manifest: What the collection was made with.
        store: Records, features and windows.
    """

    def __init__(self, path: Path, manifest: Manifest, store: LanceStore, *, read_only: bool) -> None:
        self.path = path
        self.manifest = manifest
        self.store = store
        self._read_only = read_only
        self._spec = WorkerSpec(
            manifest.extractor, manifest.weights, manifest.whitening, manifest.sampling_rate
        )
        self._extractor: FrameExtractor | None = None

    @classmethod
    def open(
        cls,
        path: PathLike,
        *,
        extractor: str | None = None,
        weights: PathLike | None = None,
        whitening: PathLike | None = None,
        create: bool = True,
        read_only: bool = False,
    ) -> Index:
        """Open the collection in a folder, or make one.

        Args:
            path: The folder.
            extractor: Name of what makes the features, see :func:`vidkin.features.open_extractor`; default
                that of the collection, ``classical`` for a new one. Naming another one is an error.
            weights: The network's weights, a safetensors file; for a new collection, or where the file moved (which
                is remembered unless ``read_only``).
            whitening: Of the features, a safetensors file; likewise.
            create: Make the collection if there is none.
            read_only: Refuse to write; never creates.

        Raises:
            CollectionNotFoundError: There is no collection and none is to be made.
            CollectionMismatchError: It was made with another extractor or other weights.
            CollectionError: It is damaged or made by a newer vidkin, or the folder holds other things.
            ExtractorError: The extractor cannot be opened.
        """
        folder = Path(path).expanduser().absolute()
        from vidkin.features import absolute_name

        name = None if extractor is None else absolute_name(extractor)
        given = WorkerSpec(name or "classical", _absolute(weights), _absolute(whitening))
        if create and not read_only and not Manifest.exists(folder):
            create_collection(folder, given)
        manifest = Manifest.read(folder)
        index = cls(folder, manifest, LanceStore(folder), read_only=read_only)
        if extractor is not None or weights is not None or whitening is not None:
            # The files of one extractor are none of another's; that they do not mix is said below.
            same = name is None or name == manifest.extractor
            index._spec = WorkerSpec(
                name or manifest.extractor,
                given.weights or (manifest.weights if same else None),
                given.whitening or (manifest.whitening if same else None),
                manifest.sampling_rate,
            )
            manifest.check(folder, index.extractor.fingerprint)
            if not read_only:
                index._note_places()
        return index

    @property
    def extractor_name(self) -> str:
        """Name of what makes the features."""
        return self.manifest.extractor

    @property
    def extractor(self) -> FrameExtractor:
        """What makes the features; opened on first use, as reading lists needs none."""
        if self._extractor is None:
            extractor = self._opened()
            self.manifest.check(self.path, extractor.fingerprint)
            self._extractor = extractor
        return self._extractor

    def _note_places(self) -> None:
        """Remember where the model, the weights and the whitening are by now; they are known to be the same."""
        spec = self._spec
        now = replace(self.manifest, extractor=spec.extractor, weights=spec.weights, whitening=spec.whitening)
        if now != self.manifest:
            with writer_lock(self.path, wait=10.0):
                now.write(self.path)
            self.manifest = now

    def _opened(self) -> FrameExtractor:
        for kind in ("weights", "whitening"):
            place = getattr(self._spec, kind)
            if place is not None and place == getattr(self.manifest, kind) and not os.path.exists(place):
                raise CollectionError(
                    f"{self.path} was made with the {kind} {place}, which are not there any more: say where they are "
                    f"(`vidkin index PATH... --{kind} FILE`, in Python Index.open(..., {kind}=FILE)), and the index "
                    "remembers it"
                )
        try:
            return self._spec.open()
        except UnknownExtractorError as error:
            # Named by the collection and not by the caller, who may not even know that there is a model.
            if self._spec.extractor != self.manifest.extractor or not self._spec.extractor.startswith(
                "model:"
            ):
                raise
            raise UnknownExtractorError(
                f"{error}; {self.path} was made with the model there: if it has moved, name its folder "
                "(--model FOLDER, in Python extractor='FOLDER')"
            ) from error

    def add(
        self,
        paths: PathLike | Iterable[PathLike],
        *,
        workers: int | None = None,
        prune: bool = False,
        on_progress: OnProgress | None = None,
        retry_broken: bool = False,
        wait: float = 0.0,
        executor: Executor | None = None,
    ) -> IngestReport:
        """Bring the collection up to date with folders and files; only what is new or changed is read.

        Each video is written when it is complete: interrupted at any point, the next call goes on.

        Args:
            paths: Folders, files or patterns, see :func:`vidkin.index.ingest.scan.scan`.
            workers: Processes that decode; default one a processor.
            prune: Forget videos of these folders whose files are gone.
            on_progress: Called for each file settled and now and then in between.
            retry_broken: Read broken files again although they did not change.
            wait: Seconds to wait for another writer.
            executor: Makes the features, instead of processes of this machine.

        Raises:
            CollectionLockedError: Another process is writing.
            IngestInterrupted: On Ctrl-C, with the report so far.
        """
        self._check_writable()
        if workers is not None and workers < 1:
            raise InvalidArgumentError(
                f"workers is {workers}, allowed is 1 or more, or None for all processors"
            )
        found = scan([paths] if isinstance(paths, str | os.PathLike) else paths)
        with writer_lock(self.path, wait=wait):
            self.store.recover()
            calibration = Calibration.open(self.path, self.extractor)
            if executor is None:
                executor = ProcessExecutor(self._spec, workers=workers or usable_processors())
            report = ingest(
                self.store,
                found,
                executor,
                base_rate=self.manifest.sampling_rate,
                baseline=calibration.baseline,
                prune=prune,
                retry_broken=retry_broken,
                on_progress=on_progress,
            )
            try:
                self.store.optimise()
                self._note_common([outcome.path for outcome in report.added])
            except KeyboardInterrupt:
                # All videos are in; what is interrupted here only makes searches faster and better.
                raise IngestInterrupted(report) from None
            return report

    def remove(self, paths: PathLike | Iterable[PathLike], *, wait: float = 0.0) -> int:
        """Forget files, and all files of folders; the number of records removed.

        Raises:
            NotIndexedError: Nothing is known of one of the paths; then nothing is removed.
            CollectionLockedError: Another process is writing.
        """
        self._check_writable()
        given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        with writer_lock(self.path, wait=wait):
            self.store.recover()
            ids = {record.id for path in given for record in self._records_at(os.fspath(path))}
            self.store.remove(ids)
            return len(ids)

    def videos(self) -> list[VideoRecord]:
        """All records, broken ones too, sorted by path."""
        return self.store.videos()

    def info(self) -> IndexInfo:
        """Numbers about the collection."""
        return collection_info(self.path, self.manifest, self.store)

    def refresh(self) -> bool:
        """See what other processes wrote since; True if there is something new."""
        return self.store.refresh()

    def close(self) -> None:
        """Release memory and files; the index cannot be used afterwards."""
        self.store.close()

    def __enter__(self) -> Index:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"Index({str(self.path)!r}, extractor={self.manifest.extractor!r}, videos={self.store.count()})"
        )

    def _check_writable(self) -> None:
        if self._read_only:
            raise CollectionError(
                f"{self.path} was opened read-only; open it with read_only=False to change it"
            )

    def _records_at(self, given: str) -> list[VideoRecord]:
        """The record of a file, or those of all files in a folder."""
        path = os.path.abspath(os.path.expanduser(given))
        inside = os.path.join(path, "")
        found = [r for r in self.store.videos() if r.path == path or r.path.startswith(inside)]
        if not found:
            # The same name may be written with composed or decomposed accents.
            plain = unicodedata.normalize("NFC", path)
            found = [r for r in self.store.videos() if unicodedata.normalize("NFC", r.path) == plain]
        if not found:
            raise NotIndexedError(f"{path} is not in the index {self.path}; `vidkin info` lists what is")
        return found


def _absolute(path: PathLike | None) -> str | None:
    return None if path is None else os.path.abspath(os.path.expanduser(path))
