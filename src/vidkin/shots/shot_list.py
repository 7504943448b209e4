"""The shots of a video as a list that can be saved as images, split into files and exported."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from vidkin._base.files import PathLike
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.media.notebook import Results
from vidkin.shots.contract import Curve, Cut, Shot, ShotDetection
from vidkin.shots.exporter import ShotExporter, copy_shots, split_shots
from vidkin.shots.formats import match_shot_format
from vidkin.shots.images import write_thumbnails

if TYPE_CHECKING:
    from vidkin.media import SplitReport


class Shots(Results[Shot]):
    """A list of a video's shots, with methods to write files; slicing, sorting and filtering preserve the type.

    Attributes:
        detection: The complete result for the video.
    """

    detection: ShotDetection

    @classmethod
    def of(cls, detection: ShotDetection) -> Shots:
        """Create the list of shots in a detection."""
        shots = cls.of_video(detection.path, detection.shots)
        shots.detection = detection
        return shots

    @property
    def cuts(self) -> tuple[Cut, ...]:
        """All transitions in the video, in order of time."""
        return self.detection.cuts

    @property
    def curve(self) -> Curve | None:
        """The curve from which the cuts were derived; None if the detector has none."""
        return self.detection.curve

    def save_images(self, folder: PathLike, *, count: int = 1, short_side: int | None = None) -> tuple[Path, ...]:
        """Save images of these shots as JPEG; see `vidkin.shots.write_thumbnails`.

        Args:
            folder: Output folder; created if missing.
            count: Number of images per shot.
            short_side: Shorter side of the images in pixels; None for the video's size.

        Raises:
            InvalidArgumentError: The shots come from frames in memory.
            MediaError: The video cannot be read, or an image cannot be written.
        """
        return write_thumbnails(self._as_detection("save_images"), folder, short_side=short_side, count=count)

    def split(self, folder: PathLike, *, at_key_frames: bool = False) -> SplitReport:
        """Write each of these shots as a video; see `vidkin.shots.split_shots`.

        Args:
            folder: Output folder; created if missing.
            at_key_frames: Copy without re-encoding; pieces then start at key frames, see `vidkin.shots.copy_shots`.

        Raises:
            InvalidArgumentError: The shots come from frames in memory.
            MediaError: The video cannot be read, or a piece cannot be written.
        """
        write = copy_shots if at_key_frames else split_shots
        return write(self._as_detection("split"), folder)

    def export(self, path: PathLike) -> None:
        """Write these shots to a file; the extension determines the format: ``film.edl``, ``shots.csv``, ``page.html``.

        Raises:
            InvalidArgumentError: No format has this extension; the message lists all extensions.
            MediaError: The video cannot be read, or the file cannot be written.
        """
        detection = self._as_detection("export")
        name = match_shot_format(path)
        exporter = ShotExporter({name: Path(path)}, [detection.path])
        for failed, cause in (*exporter.export(detection).failures, *exporter.export_tables()[1]):
            raise MediaError(failed, cause)

    def _copy_with(self, items: Iterable[Shot]) -> Self:
        shots = super()._copy_with(items)
        shots.detection = self.detection
        return shots

    def _as_detection(self, method: str) -> ShotDetection:
        """Return the detection with only these shots, in order of time."""
        if not self.path:
            raise InvalidArgumentError(f"{method} requires shots from a file, got shots from frames in memory")
        return replace(self.detection, shots=tuple(sorted(self, key=lambda shot: shot.start_frame)))
