"""The work of a Ray worker, without Ray."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from tests.index.helpers import FATAL, PLAIN, color_video, video
from vidkin._version import __version__
from vidkin.errors import UnknownExtractorError
from vidkin.index import Advanced, Described, SerialExecutor, Unreadable, WorkerSpec
from vidkin.index.ingest.worker import Alive, Failed
from vidkin_scale.describer import Describer, Opened


def describer(spec: WorkerSpec) -> Describer:
    worker = Describer()
    opened = worker.open(spec)
    assert isinstance(opened, Opened)
    assert (opened.version, opened.fingerprint) == (__version__, "plain-1")
    return worker


def test_describer_yields_the_events_of_a_process_and_heartbeats(tmp_path: Path) -> None:
    path = video(tmp_path / "a.mp4")
    batches = list(describer(PLAIN).describe(str(path), path.stat().st_size))
    messages = [message for batch in batches for message in batch]
    assert isinstance(messages[0], Alive)
    events = [message for message in messages if not isinstance(message, Alive)]
    expected = list(SerialExecutor(PLAIN).run([str(path)]))
    assert [type(event) for event in events] == [type(event) for event in expected]
    last, wanted = events[-1], expected[-1]
    assert isinstance(last, Described)
    assert isinstance(wanted, Described)
    assert sum(event.frames for event in events if isinstance(event, Advanced)) == len(last.features) > 0
    assert last.info == wanted.info
    assert np.array_equal(last.features.values, wanted.features.values)


def test_bug_in_an_extractor_affects_one_file(tmp_path: Path) -> None:
    path = color_video(tmp_path / "bug.mp4", "bug")
    *_, batch = describer(FATAL).describe(str(path), path.stat().st_size)
    last = batch[-1]
    assert isinstance(last, Unreadable)
    assert last.cause == "internal error: ZeroDivisionError: a bug in an extractor"


def test_file_that_differs_on_the_worker_is_not_read(tmp_path: Path) -> None:
    path = video(tmp_path / "a.mp4")
    size = path.stat().st_size
    worker = describer(PLAIN)
    ((event,),) = worker.describe(str(path), size + 1000)
    assert isinstance(event, Unreadable)
    assert event.temporary
    assert f"does not see this file: it has {size:,} bytes there, {size + 1000:,} here" in event.cause
    ((event,),) = worker.describe(str(tmp_path / "gone.mp4"), 5)
    assert isinstance(event, Unreadable)
    assert "it is not there; mount the folder at the same path on every machine" in event.cause


def test_missing_file_is_reported_as_without_a_cluster(tmp_path: Path) -> None:
    path = os.fspath(tmp_path / "gone.mp4")
    *_, batch = describer(PLAIN).describe(path, -1)
    assert batch[-1:] == list(SerialExecutor(PLAIN).run([path]))


def test_describer_reports_an_extractor_that_cannot_be_opened() -> None:
    failed = Describer().open(WorkerSpec("nonsense"))
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, UnknownExtractorError)
    assert "UnknownExtractorError" in failed.trace
