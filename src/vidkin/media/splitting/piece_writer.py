"""Write one piece of a video: its frames, copied or encoded, with their times, and its sound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import av
import numpy as np
from av.format import Flags as FormatFlags
from numpy.typing import NDArray

from vidkin.media.decoding.reader import frame_rate
from vidkin.media.encode import open_media_output
from vidkin.media.splitting.encoder import PictureEncoder
from vidkin.media.splitting.exact_plan import PieceStretch, decoding_times
from vidkin.media.splitting.h264 import ParameterSets, split_units, to_lengths
from vidkin.media.splitting.material import LostFrameError, Material
from vidkin.media.splitting.pictures import StoredPictures
from vidkin.media.splitting.sound import SoundReader

if TYPE_CHECKING:
    from av.container import OutputContainer
    from av.packet import Packet
    from av.video.stream import VideoStream

__all__ = ["PieceWriter"]

# In these formats players expect parameter sets of HEVC only in the head, which this name states.
_HEVC_NAME = "hvc1"
_WITH_NAMES = (".mp4", ".mov", ".m4v")


class PieceWriter:
    """Writes one piece.

    Args:
        main: The video stream of the source.
        plan: The stretches of the piece.
        stored: Packets of the source; None if nothing is copied.
        timeline: [N + 1] times of the frames and of the end of the piece, in units of the source.
        sound: Reader of the source's other streams.
        quality: Constant quality of encoded frames.
        codec: Codec of encoded video; None keeps the source's.
    """

    def __init__(
        self,
        main: VideoStream,
        plan: Sequence[PieceStretch],
        stored: StoredPictures | None,
        timeline: NDArray[np.int64],
        sound: SoundReader,
        *,
        quality: int,
        codec: str | None,
    ) -> None:
        self._main, self._plan, self._stored, self._sound = main, plan, stored, sound
        self._quality, self._codec = quality, codec
        self._tick = Fraction(main.time_base or Fraction(1, 90_000))
        self._timeline = timeline
        # Frames in the order in which they are written.
        self._order = [
            frame
            for stretch in plan
            for frame in (
                stored.ranks[stretch.start : stretch.end].tolist()
                if stretch.is_copied and stored is not None
                else range(stretch.start, stretch.end)
            )
        ]
        start = plan[0].start
        shown = [int(timeline[frame - start] - timeline[0]) for frame in self._order]
        self._shown, self._decoded = shown, decoding_times(shown)
        self._durations = np.diff(timeline)
        self._is_mixed = len({stretch.is_copied for stretch in plan}) > 1
        self._written = 0
        self._packets = 0
        self._encoder: PictureEncoder | None = None

    def write(self, path: Path, parts: Iterator[Material]) -> int:
        """Write the file, which appears when it is complete.

        Returns:
            The number of packets written.

        Raises:
            LostFrameError: Frames are missing.
            MediaError: The file cannot be written.
        """
        plan = iter(self._plan)
        stretch, came = next(plan), 0
        start, end = int(self._timeline[0]) * self._tick, int(self._timeline[-1]) * self._tick
        with open_media_output(path) as partial, av.open(f"file:{partial}", "w") as output:
            video = self._add_video(output)
            self._sound.begin(output, start, is_first=stretch.start == 0)
            for part in parts:
                if part.frame != self._order[came]:
                    break
                came += 1
                while part.frame >= stretch.end:
                    self._finish_stretch(output, video)
                    stretch = next(plan)
                if part.packet is not None:
                    self._mux(output, video, part.packet)
                else:
                    encoder = self._encoder = self._encoder or self._new_encoder(output)
                    for packet in encoder.encode(part.picture):
                        self._mux(output, video, self._fitted(packet))
            self._finish_stretch(output, video)
            if self._written != len(self._order):
                raise LostFrameError(
                    str(path), f"only {self._written} of its {len(self._order)} frames can be read"
                )
            self._packets += self._sound.copy_until(end)
        return self._packets

    def _add_video(self, output: OutputContainer) -> VideoStream:
        """Add the video stream, with the parameters of everything that will be in it."""
        given = self._main.codec_context
        if self._codec is not None:
            added = output.add_mux_stream(
                self._codec,
                rate=Fraction(frame_rate(self._main)).limit_denominator(60_060),
                width=given.width,
                height=given.height,
                time_base=self._tick,
            )
            return cast("VideoStream", added)
        video = output.add_stream_from_template(self._main, opaque=True)
        if given.codec.canonical_name == "hevc" and output.name.endswith(_WITH_NAMES):
            video.codec_context.codec_tag = _HEVC_NAME
        if all(stretch.is_copied for stretch in self._plan):
            return video
        self._encoder = self._new_encoder(output)
        extra = self._encoder.extradata
        if not self._is_mixed:
            video.codec_context.extradata = extra or video.codec_context.extradata
        elif self._sets is not None:
            units = list(split_units(extra or b"", None))
            video.codec_context.extradata = self._sets.join(units).to_bytes()
        return video

    def _new_encoder(self, output: OutputContainer) -> PictureEncoder:
        stored, is_mixed = self._stored, self._is_mixed
        wants_sets = FormatFlags.global_header in FormatFlags(output.format.flags) and self._codec is None
        profile = stored.profile if is_mixed and stored is not None else None
        return PictureEncoder(
            self._main,
            self._quality,
            self._tick,
            has_global_sets=self._sets is not None if is_mixed else wants_sets,
            profile=profile,
            number=stored.number if is_mixed and stored is not None else None,
            depth=0 if profile is None else min(2, self._main.codec_context.reorder_depth),
        )

    @property
    def _sets(self) -> ParameterSets | None:
        return None if self._stored is None else self._stored.sets

    def _finish_stretch(self, output: OutputContainer, video: VideoStream) -> None:
        """Write the packets held back by the encoder; the next stretch begins with a key frame."""
        if self._encoder is not None and self._encoder.is_used:
            for packet in self._encoder.encode(None):
                self._mux(output, video, self._fitted(packet))
            self._encoder = None

    def _fitted(self, packet: Packet[Any]) -> Packet[Any]:
        """An encoded packet in the form of the packets copied to the same file."""
        if not self._is_mixed or self._sets is None:
            return packet
        fitted: Packet[Any] = av.Packet(to_lengths(list(split_units(bytes(packet), None))))
        fitted.is_keyframe = packet.is_keyframe
        return fitted

    def _mux(self, output: OutputContainer, video: VideoStream, packet: Packet[Any]) -> None:
        """Write the next packet of the video, with its times, and the sound up to there."""
        place = self._written
        frame = self._order[place] - self._plan[0].start
        self._packets += 1 + self._sound.copy_until(int(self._timeline[frame]) * self._tick)
        packet.time_base = self._tick
        packet.pts, packet.dts = self._shown[place], self._decoded[place]
        packet.duration = int(self._durations[frame])
        packet.stream = video
        output.mux_one(packet)
        self._written += 1
