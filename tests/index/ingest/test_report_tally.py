"""Outcomes are counted one by one, and each one is reported to the progress bar."""

from __future__ import annotations

from vidkin.index import FileOutcome, IngestInterrupted, Progress, Scan, VideoFile
from vidkin.index.ingest.report import Tally

FILES = (VideoFile("/a.mp4", 100, 1), VideoFile("/b.mp4", 20, 1))
SCAN = Scan(FILES, (("/c.mp4", "permission denied"),), ("/",), skipped=(("/x.txt", "its name"),))


def test_progress_counts_files_bytes_frames_and_seconds() -> None:
    told: list[Progress] = []
    tally = Tally(SCAN, told.append)
    tally.advance("/a.mp4", 30, 2.5)
    tally.advance("/a.mp4", 10, 1.0)
    tally.finish("/a.mp4", 4.0)
    tally.settle(FileOutcome("/a.mp4", "added"))
    assert [(step.done, step.total, step.frames, step.seconds_of_video) for step in told] == [
        (0, 3, 30, 2.5),
        (0, 3, 40, 3.5),
        (1, 3, 40, 4.0),  # up to the end of the video, which is after its last frame
    ]
    assert (told[-1].bytes, told[-1].outcome) == (100, FileOutcome("/a.mp4", "added"))
    assert (told[0].path, told[0].outcome) == ("/a.mp4", None)


def test_report_sorts_outcomes_by_kind_and_path() -> None:
    tally = Tally(SCAN, None)
    tally.settle(FileOutcome("/b.mp4", "changed"))
    tally.settle(FileOutcome("/a.mp4", "added"))
    tally.settle(FileOutcome("/c.mp4", "broken", "permission denied"))
    tally.miss("missing", ["/z.mp4", "/y.mp4"])
    tally.miss("excluded", ["/w.mp4"])
    report = tally.report()
    assert [outcome.path for outcome in report.added] == ["/a.mp4", "/b.mp4"]
    assert [outcome.path for outcome in report.missing] == ["/y.mp4", "/z.mp4"]
    assert report.excluded == (FileOutcome("/w.mp4", "excluded"),)
    assert [(outcome.path, outcome.cause) for outcome in report.skipped] == [("/x.txt", "its name")]
    assert (report.total, report.usable) == (3, 2)
    assert str(report) == "2 added, 0 unchanged, 0 moved, 1 broken, 0 removed, 2 missing"


def test_removed_file_has_no_other_outcome() -> None:
    tally = Tally(SCAN, None)
    tally.settle(FileOutcome("/a.mp4", "unchanged"))
    tally.remove(["/a.mp4"])
    report = tally.report()
    assert (report.unchanged, [outcome.path for outcome in report.removed]) == ((), ["/a.mp4"])
    assert "missing" not in str(report)


def test_interrupt_carries_the_report() -> None:
    report = Tally(SCAN, None).report()
    error = IngestInterrupted(report)
    assert isinstance(error, KeyboardInterrupt)
    assert error.report is report
    assert str(error) == "interrupted: 0 added, 0 unchanged, 0 moved, 0 broken, 0 removed"
