"""The detections that ``vidkin shots`` works through: one after the other, or several at once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from vidkin.cli.console import meter
from vidkin.errors import MediaError

if TYPE_CHECKING:
    from vidkin.shots import ShotDetection, Transition

__all__ = ["ShotSearch"]


class ShotSearch(NamedTuple):
    """The options that apply to every video.

    Attributes:
        detector: Name of the detector.
        types: Transitions to report.
        start: Seconds at which to begin.
        end: Seconds at which to end; None is the end of the video.
        min_length: Seconds of the shortest shot; None for any.
        merge_short: Shorter shots are joined to a neighbor; otherwise they are left out.
    """

    detector: str
    types: tuple[Transition, ...]
    start: float
    end: float | None
    min_length: float | None
    merge_short: bool

    @staticmethod
    def is_parallel(paths: Sequence[str], workers: int | None) -> bool:
        """Whether several videos are read at once: then one bar shows the progress of all."""
        return len(paths) > 1 and workers != 1 and (os.cpu_count() or 1) > 1

    def run(self, paths: Sequence[str], workers: int | None) -> Iterator[ShotDetection | MediaError]:
        """The result of each video in order: one after the other with its own progress, or several at once."""
        from vidkin.shots import detect, detect_many

        if self.is_parallel(paths, workers):
            many = detect_many(
                paths, self.detector, types=self.types, start=self.start, end=self.end, workers=workers
            )
            with meter("videos") as bar:
                for done, detection in enumerate(many):
                    bar.update(done + 1, len(paths))
                    yield self._without_short(detection)
            return
        for path in paths:
            try:
                with meter(os.path.basename(path)) as bar:
                    detection = detect(
                        path,
                        self.detector,
                        types=self.types,
                        start=self.start,
                        end=self.end,
                        on_progress=bar.update,
                    )
            except MediaError as error:
                yield error
            else:
                yield self._without_short(detection)

    def _without_short(self, detection: ShotDetection | MediaError) -> ShotDetection | MediaError:
        from vidkin.shots import drop_short_shots, merge_short_shots

        if self.min_length is None or isinstance(detection, MediaError):
            return detection
        change = merge_short_shots if self.merge_short else drop_short_shots
        return change(detection, self.min_length)
