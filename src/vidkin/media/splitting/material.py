"""What pieces are made of, in the order in which it is written: packets to copy, and frames to encode."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import MediaError
from vidkin.media.decoding.reader import PictureReader
from vidkin.media.splitting.exact_plan import PieceStretch
from vidkin.media.splitting.pictures import StoredPictures

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.packet import Packet
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

__all__ = ["LostFrameError", "Material", "iter_material"]


class LostFrameError(MediaError):
    """A frame did not come where its packet was."""


class Material(NamedTuple):
    """A packet to copy or a frame to encode.

    Attributes:
        piece: Number of its piece.
        frame: Number of the frame in the video.
        packet: What to copy.
        picture: What to encode.
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
    """The material of all pieces, those of one after those of another.

    Args:
        name: The file, for messages.
        container: The open file, from which nothing has been read.
        stream: Its video.
        stored: Its packets; None decodes every frame.
        plans: The stretches of every piece.
        on_progress: Called with (frames read, frames in all).
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
    """Decodes the groups of pictures in which a frame is to be encoded, as far as it takes, and no other.

    A group begins at a frame at which copying could begin, so it needs nothing from before.
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
        # Of every group: the place of its first packet, and of the last one that has to be decoded.
        self._starts = np.unique(np.append(0, stored.entries))
        wanted = self._is_encoded[stored.ranks]
        ends = np.append(self._starts[1:], len(stored))
        self._lasts = [
            start + int(places[-1]) if len(places := np.flatnonzero(wanted[start:end])) else -1
            for start, end in zip(self._starts.tolist(), ends.tolist(), strict=True)
        ]

    def parts(self) -> Iterator[tuple[int, Material | None]]:
        """(packets read, material or nothing)."""
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
        """The picture as material, if it is to be encoded and was not had before."""
        if picture.pts is None:
            return
        frame = int(np.searchsorted(self._times, picture.pts))
        if frame < len(self._times) and self._times[frame] == picture.pts and self._is_encoded[frame]:
            self._is_encoded[frame] = False
            yield place, Material(int(self._owners[frame]), frame, picture=picture)
