"""Plan which frames of a piece are copied and which are encoded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import MediaError
from vidkin.media.reader import PictureReader
from vidkin.media.stored_pictures import StoredPictures

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.packet import Packet
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream


class PieceStretch(NamedTuple):
    """Consecutive frames of a piece.

    Attributes:
        start: The first frame.
        end: The first frame after the stretch.
        is_copied: Whether packets are copied; otherwise frames are encoded.
    """

    start: int
    end: int
    is_copied: bool


def plan_piece(stored: StoredPictures | None, start: int, end: int) -> list[PieceStretch]:
    """Divide the frames from ``start`` up to ``end`` into stretches, in order.

    Packets are copied from the first key frame that needs nothing from before, as far as they need nothing from after
    the piece; frames before and after are encoded. If the two kinds cannot follow each other in one stream, all frames
    are encoded.

    Args:
        stored: Packets of the video; None if nothing can be copied.
        start: First frame of the piece.
        end: First frame after the piece.
    """
    if stored is None:
        return [PieceStretch(start, end, False)]
    stretches: list[PieceStretch] = []
    frame = start
    while frame < end:
        place = int(np.searchsorted(stored.entries, frame))
        entry = int(stored.entries[place]) if place < len(stored.entries) else end
        last = stored.last_end(entry, end) if entry == frame else frame
        if last > frame:
            stretches.append(PieceStretch(frame, last, True))
            frame = last
            continue
        if entry == frame:  # nothing can be copied here
            entry = int(stored.entries[place + 1]) if place + 1 < len(stored.entries) else end
        stretches.append(PieceStretch(frame, min(entry, end), False))
        frame = min(entry, end)
    if len(stretches) > 1 and not stored.is_mixable:
        return [PieceStretch(start, end, False)]
    return stretches


def decoding_times(shown: Sequence[int]) -> list[int]:
    """Decoding times that increase and are never after the presentation times.

    Args:
        shown: Presentation times in the order of decoding, all different, in units of the stream.
    """
    times = sorted(shown)
    ranks = {time: rank for rank, time in enumerate(times)}
    # Number of pictures that must be decoded before the first is shown.
    delay = max((place - ranks[time] for place, time in enumerate(shown)), default=0)
    step = max(1, round((times[-1] - times[0]) / (len(times) - 1))) if len(times) > 1 else 1
    return [*(times[0] - step * (delay - place) for place in range(delay)), *times[: len(times) - delay]]


# The material of pieces in the order of writing: packets to copy, and frames to encode.


class LostFrameError(MediaError):
    """A packet did not give its frame."""


class Material(NamedTuple):
    """A packet to copy or a frame to encode.

    Attributes:
        piece: Number of the piece it belongs to.
        frame: Number of the frame in the video.
        packet: The packet to copy.
        picture: The picture to encode.
    """

    piece: int
    frame: int
    packet: Packet[Any] | None = None
    picture: VideoFrame | None = None


def iter_material(
    name: str,
    container: InputContainer,
    stream: VideoStream,
    stored: StoredPictures | None,
    plans: Sequence[Sequence[PieceStretch]],
    on_progress: Callable[[float, float | None], None] | None = None,
) -> Iterator[Material]:
    """Yield the material of all pieces, one piece after another.

    Args:
        name: Name of the file, for messages.
        container: The open file, from which nothing has been read.
        stream: The file's video stream.
        stored: Packets of the video; None decodes every frame.
        plans: The stretches of every piece.
        on_progress: Callback that receives (frames read, total number of frames).
    """
    total = plans[-1][-1].end if stored is None else len(stored)
    owners = np.full(total, -1, np.int64)
    is_copied = np.zeros(total, bool)
    for piece, plan in enumerate(plans):
        for stretch in plan:
            owners[stretch.start : stretch.end] = piece
            is_copied[stretch.start : stretch.end] = stretch.is_copied
    reader = PictureReader(name, container, stream)
    groups = None if stored is None else _Groups(reader, stored, owners, is_copied)
    for place, part in _decode_all(reader, owners) if groups is None else groups.parts():
        if on_progress is not None:
            on_progress(place, total)
        if part is not None:
            yield part


def _decode_all(reader: PictureReader, owners: NDArray[np.int64]) -> Iterator[tuple[int, Material | None]]:
    for frame, (_, picture) in enumerate(reader.pictures()):
        if frame >= len(owners):
            return
        piece = int(owners[frame])
        yield frame, None if piece < 0 else Material(piece, frame, picture=picture)


class _Groups:
    """Decodes only the groups of pictures that contain a frame to encode, and only as far as necessary.

    A group begins at a frame where copying could begin, so it needs nothing from before.
    """

    def __init__(
        self,
        reader: PictureReader,
        stored: StoredPictures,
        owners: NDArray[np.int64],
        is_copied: NDArray[np.bool_],
    ) -> None:
        self._reader, self._stored, self._owners, self._is_copied = reader, stored, owners, is_copied
        self._times = stored.times()
        self._is_encoded = (owners >= 0) & ~is_copied
        # For every group: the place of its first packet, and of the last one to decode.
        self._starts = np.unique(np.append(0, stored.entries))
        encoded = self._is_encoded[stored.ranks]
        ends = np.append(self._starts[1:], len(stored))
        self._lasts = [
            start + int(places[-1]) if len(places := np.flatnonzero(encoded[start:end])) else -1
            for start, end in zip(self._starts.tolist(), ends.tolist(), strict=True)
        ]

    def parts(self) -> Iterator[tuple[int, Material | None]]:
        """Yield (packets read, material or None)."""
        last = int(np.flatnonzero(self._owners[self._stored.ranks] >= 0)[-1])
        ordinals = self._stored.ordinals
        place = 0
        group = 0
        packets = (packet for packet in self._reader.container.demux(self._reader.stream) if packet.size)
        for ordinal, packet in enumerate(packets):
            is_shown = place < len(ordinals) and ordinals[place] == ordinal
            if is_shown and group + 1 < len(self._starts) and place == self._starts[group + 1]:
                group += 1
            to_do = self._lasts[group]
            frame = int(self._stored.ranks[place]) if is_shown else -1
            if frame >= 0 and self._is_copied[frame]:
                yield place, Material(int(self._owners[frame]), frame, packet=packet)
            else:
                yield place, None
            if to_do >= place:
                for picture in self._reader.feed(packet):
                    yield from self._take(picture, place)
                if is_shown and place == to_do:
                    for picture in self._reader.feed(None):
                        yield from self._take(picture, place)
                    self._reader.stream.codec_context.flush_buffers()
            if place == last and is_shown:
                return
            place += is_shown

    def _take(self, picture: VideoFrame, place: int) -> Iterator[tuple[int, Material]]:
        """The picture as material, if it is to be encoded and has not been returned before."""
        if picture.pts is None:
            return
        frame = int(np.searchsorted(self._times, picture.pts))
        if frame < len(self._times) and self._times[frame] == picture.pts and self._is_encoded[frame]:
            self._is_encoded[frame] = False
            yield place, Material(int(self._owners[frame]), frame, picture=picture)
