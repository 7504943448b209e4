"""Split a video frame-accurately, copying packets where possible and encoding only the remaining frames."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike, safe_name
from vidkin.errors import InvalidArgumentError
from vidkin.media.frames import DEFAULT_TIME_BASE
from vidkin.media.piece_writer import (
    LostFrameError,
    PieceStretch,
    PieceWriter,
    SoundReader,
    encoder_of,
    iter_piece_frames,
    plan_piece,
)
from vidkin.media.pieces import (
    Piece,
    PieceForm,
    SplitReport,
    choose_form,
    describe_pieces,
    piece_codes,
    piece_paths,
)
from vidkin.media.probing import probe
from vidkin.media.reader import open_video
from vidkin.media.stored_pictures import StoredPictures, read_stored_pictures
from vidkin.media.time_code import read_time_code, timeline_rate

OnSplitProgress = Callable[[float, float | None], None]

# Constant quality on the x264 scale; 0 would be lossless, which the profiles of most videos do not allow.
_BEST, _WORST = 1, 51


class Span(Protocol):
    """A part of a video, for example a shot."""

    @property
    def start(self) -> float:
        """Start in seconds from the first frame of the video."""
        ...

    @property
    def end(self) -> float:
        """End in seconds from the first frame of the video."""
        ...

    @property
    def start_frame(self) -> int:
        """Index of the first frame, counting from 0."""
        ...

    @property
    def end_frame(self) -> int:
        """Index of the first frame after the part."""
        ...


@check_arguments
def split_exactly(
    source: PathLike,
    folder: PathLike,
    spans: Sequence[Span],
    *,
    times: NDArray[np.float64],
    names: Sequence[str] | None = None,
    stream: int | None = None,
    time_code: str | None = None,
    quality: int = 18,
    on_progress: OnSplitProgress | None = None,
) -> SplitReport:
    """Write parts of a video as files with exactly their frames, including audio and subtitles.

    Packets are copied from the first key frame of a part, up to the last packet that needs no packet after the part;
    frames before and after are encoded with the codec and in the format of the source. This applies to H.264, VP8 and
    VP9. With other codecs, a part is copied as a whole if this gives exactly its frames, and otherwise encoded as a
    whole (HEVC as HEVC, all others as H.264 in MP4). Frames keep their times, counted from the part's first frame.
    Audio and subtitle packets are copied to the part in which they start; subtitles are cut off at its end.

    A file appears under its name only when it is complete. Existing files are replaced only if they are pieces of this
    video, because recordings are often numbered in the same way.

    Args:
        source: The video.
        folder: Folder to write to; created if missing.
        spans: The parts, in order, without overlaps.
        times: [T] times in seconds of all decoded frames, at least up to the end of the last part.
        names: Names of the files, without extension; default: ``<name>-001``, ``<name>-002``, ...
        stream: Index of the video stream in the source, if there are several; None takes the first, as players do.
            Other videos are left out.
        time_code: Time code of the first frame of the source, from which the time codes of the pieces are counted;
            None uses the time code in the source, "" writes none.
        quality: Constant quality of encoded frames, from 1 (best) to 51, on the x264 scale.
        on_progress: Callback that receives (frames read, total frames).

    Raises:
        InvalidArgumentError: ``spans`` is empty, overlaps or extends beyond ``times``, the number of ``names`` differs
            from the number of parts, or ``quality`` is out of range.
        MediaError: The source cannot be read, a piece cannot be written, or another file has its name.
    """
    name = os.fspath(source)
    if names is None:
        digits = max(3, len(str(len(spans))))
        names = [f"{safe_name(Path(name).stem)}-{number:0{digits}d}" for number in range(1, len(spans) + 1)]
    if not spans:
        raise InvalidArgumentError("parts to split into must not be empty")
    if len(names) != len(spans):
        raise InvalidArgumentError(f"names must be one per part, {len(spans)}, got {len(names)}")
    if not _BEST <= quality <= _WORST:
        raise InvalidArgumentError(f"quality must be from {_BEST} (best) to {_WORST}, got {quality}")
    previous = 0
    for span in spans:
        if not previous <= span.start_frame < span.end_frame <= len(times):
            raise InvalidArgumentError(
                f"parts must follow each other within {len(times)} frames, "
                f"got frames {span.start_frame} to {span.end_frame} after {previous}"
            )
        previous = span.end_frame
    with open_video(name, threads=1, stream=stream) as (container, video):
        time_code = read_time_code(container, video) if time_code is None else time_code
        stored = read_stored_pictures(container, video, times)
        plans = [plan_piece(stored, span.start_frame, span.end_frame) for span in spans]
        _, codec = encoder_of(video)
        if codec is not None:
            if all(stretch.is_copied for plan in plans for stretch in plan):
                codec = None
            else:  # all pieces of a video must have the same codec
                plans = [plan_piece(None, span.start_frame, span.end_frame) for span in spans]
        form = choose_form(name, container, video, codec=codec, with_time_code=bool(time_code))
        number = video.index
    paths = piece_paths(name, folder, names, form.suffix)
    codes = piece_codes(time_code, timeline_rate(times), [span.start for span in spans])
    write = partial(_write_pieces, name, number, spans, times, paths, codes, quality, form, codec, on_progress)
    try:
        return write(stored, plans)
    except LostFrameError:
        # Packets did not match the frames, so decode and encode every frame.
        return write(None, [plan_piece(None, span.start_frame, span.end_frame) for span in spans])


def _write_pieces(
    name: str,
    video: int,
    spans: Sequence[Span],
    times: NDArray[np.float64],
    paths: Sequence[Path],
    codes: Sequence[str],
    quality: int,
    form: PieceForm,
    codec: str | None,
    on_progress: OnSplitProgress | None,
    stored: StoredPictures | None,
    plans: Sequence[Sequence[PieceStretch]],
) -> SplitReport:
    """Write all pieces.

    Raises:
        LostFrameError: A packet does not decode to the expected frame.
    """
    pieces: list[Piece] = []
    made_of = describe_pieces(name)
    with (
        open_video(name, stream=video) as (container, stream),
        open_video(name, threads=1, stream=video) as (other, _),
    ):
        tick = Fraction(stream.time_base or DEFAULT_TIME_BASE)
        if stored is None:  # the times of the packets are unusable, so use those of the decoded frames
            shown = times + probe(name, stream=video).start_time
            stamps = np.rint(shown / float(tick)).astype(np.int64)
        else:
            stamps = stored.times()
        sound = SoundReader(other, form.kept - {stream.index}, stream.index)
        piece_frames = iter_piece_frames(name, container, stream, stored, plans, on_progress)
        for number, frames in groupby(piece_frames, key=lambda frame: frame.piece):
            span, path = spans[number], paths[number]
            # PieceWriter needs [N + 1] times of the frames of a part and of its end, in ticks of the stream.
            own = stamps[span.start_frame : span.end_frame]
            last = float(times[span.end_frame - 1])
            writer = PieceWriter(
                stream,
                plans[number],
                stored,
                np.append(own, own[-1] + max(1, round((span.end - last) / float(tick)))),
                sound,
                quality=quality,
                codec=codec,
                time_code=codes[number],
            )
            packets = writer.write(path, frames, source=made_of)
            encoded = sum(part.end - part.start for part in plans[number] if not part.is_copied)
            pieces.append(Piece(str(path), span.start, span.end, (number,), packets, encoded))
    if len(pieces) < len(spans):
        raise LostFrameError(name, f"it now has fewer than {spans[-1].end_frame} frames")
    return SplitReport(tuple(pieces), form.left_out)
