"""One update of an index: read and write what was named, except what was removed by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vidkin.errors import CollectionError
from vidkin.index.ingest.failure_log import ERRORS_FILE
from vidkin.index.ingest.files.known_names import use_known_names
from vidkin.index.ingest.files.scan import Scan
from vidkin.index.ingest.removal import RemovedPaths, leave_out_removed
from vidkin.index.ingest.report import IngestInterrupted, IngestReport, OnProgress
from vidkin.index.ingest.session import ingest
from vidkin.index.ingest.workers.executor import Executor
from vidkin.index.manifest import MANIFEST_FILE, Manifest
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.places.contract import Place
from vidkin.similarity import FrameFeatures

__all__ = ["update_index"]


def update_index(
    place: Place,
    manifest: Manifest,
    store: VectorStore,
    scan: Scan,
    executor: Executor,
    *,
    calibrate: Callable[[FrameFeatures], FrameFeatures],
    update_common: Callable[[Sequence[str]], None],
    prune: bool,
    retry_broken: bool,
    on_progress: OnProgress | None,
) -> IngestReport:
    """Bring an index up to date with the files of a scan; the caller holds the writer's lock.

    Files removed by name stay out, unless they are named in this scan; then they are no longer removed.

    Args:
        place, manifest, store: Place, manifest and store of the index.
        scan: Scan by the rules of the manifest.
        executor: Extracts the features.
        calibrate, prune, retry_broken, on_progress: Arguments of :func:`vidkin.index.ingest.session.ingest`.
        update_common: Callback that receives the paths of added videos once all are written.

    Raises:
        IngestInterrupted: On Ctrl-C, with the report so far.
        CollectionError: The folder of the index was deleted meanwhile.
    """
    store.recover()
    before = RemovedPaths.open(place)
    removed = before.without(scan.named)
    if removed != before:
        removed.save(place)
    report = ingest(
        store,
        use_known_names(
            leave_out_removed(scan, removed, lambda path: store.find(path) is not None),
            (record.path for record in store.videos()),
        ),
        executor,
        base_rate=manifest.sampling_rate,
        calibrate=calibrate,
        rules=manifest.rules,
        prune=prune,
        retry_broken=retry_broken,
        on_progress=on_progress,
        errors_file=None if place.folder is None else place.folder / ERRORS_FILE,
    )
    if place.folder is not None and not (place.folder / MANIFEST_FILE).is_file():
        raise CollectionError(
            f"{place.folder} was deleted or moved while videos were added; remove what is left of it and add them again"
        )
    try:
        store.optimize()
        update_common([outcome.path for outcome in report.added])
    except KeyboardInterrupt:
        # All videos are written; the step interrupted here only makes searches faster and better.
        raise IngestInterrupted(report) from None
    return report
