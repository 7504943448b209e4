"""The videos to search: copies of the queries with their segments, and unrelated videos."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Literal

import av
import numpy as np
from av.audio.resampler import AudioResampler
from av.filter import Graph
from numpy.typing import NDArray

from vidkin._base.files import VIDEO_EXTENSIONS, write_text
from vidkin._base.values import read_json
from vidkin.datasets import camera_flight
from vidkin.errors import InvalidArgumentError
from vidkin.media import probe, steady_frames, write_video
from vidkin_research.copies.edits import EDITS, EditedSegment, apply_edit
from vidkin_research.copies.transforms import covering

REAL_COPY, DISTRACTOR = "real copy", "distractor"
SOUND = "sound"
"""Family of the edits of sound."""
BOTH_KEPT = "picture and sound"
"""The edit that keeps both: compressed to 32 kbit/s over the same pictures."""

# Incremented when an edit would give different pictures or a different truth, so that stored copies are not used.
_VERSION = 1

# Unrelated footage around excerpts and beside insets: the short videos of the material, or else a photograph.
_FILLER_VIDEOS, _FILLER_LONGEST = 40, 6.0

_FILLER_WIDTH, _FILLER_HEIGHT, _FILLER_RATE = 320, 240, 12

_FILLER_PHOTOGRAPH, _FILLER_SECONDS = "ihc", 20.0


@dataclass(frozen=True, slots=True)
class GalleryVideo:
    """A video to search.

    Attributes:
        path: Path of the file.
        family: Family of the recording, see `Recording`.
        scene: Scene of the recording, see `Recording`.
        edit: How it was edited, `REAL_COPY` or `DISTRACTOR`.
        source: The query it was made from; None for an unedited video.
        segments: The stretches of the query it shows, in the order of the copy.
        mirrored: Whether left and right are exchanged.
    """

    path: Path
    family: str
    scene: str
    edit: str
    source: QueryClip | None = None
    segments: tuple[EditedSegment, ...] = ()
    mirrored: bool = False

    @property
    def edit_family(self) -> str | None:
        """What the edit changes; None for an unedited video."""
        if self.edit in SOUND_EDITS or self.edit == BOTH_KEPT:
            return SOUND
        return EDITS[self.edit].family if self.edit in EDITS else None


@dataclass(frozen=True, slots=True)
class CopyMaterial:
    """Queries and the gallery."""

    queries: tuple[QueryClip, ...]
    gallery: tuple[GalleryVideo, ...]


def make_copies(
    recordings: Sequence[Recording],
    work: Path,
    size: ClipSize,
    *,
    edits: Iterable[str] = tuple(EDITS),
    sound_edits: Iterable[str] = (),
    distractors: Iterable[Recording] = (),
    threads: int = 1,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> CopyMaterial:
    """Make queries and gallery; files made by an earlier call in the same folder are reused.

    Args:
        recordings: Clips of the longest recording of each family are queries; the others are copies or distractors.
        work: Folder of the queries and copies.
        size: Number and size of the queries.
        edits: Names in `vidkin_research.copies.edits.EDITS`; each query is edited in each of these ways.
        sound_edits: Names in `SOUND_EDITS`; the sound of each query that has some is edited in each of these ways and
            laid over unrelated pictures, and once kept with its own.
        distractors: Additional unrelated videos.
        threads: Number of copies made at the same time.
        on_progress: Callback that receives the copies made, the total number of copies, and the name of the file.

    Raises:
        InvalidArgumentError: No recording is long enough.
        MediaError: A video cannot be read, or a copy cannot be written.
    """
    queries = choose_queries(recordings, size, work / "queries")
    used = {query.recording.path for query in queries}
    others = [recording for recording in recordings if recording.path not in used]
    filler = _make_filler(work, [*others, *distractors])
    jobs = [(query, edit) for query in queries for edit in edits]
    gallery: list[GalleryVideo] = []
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda query: write_query(query, size), queries))
        for video in pool.map(lambda job: _edit_copy(job[0], job[1], work / "gallery", filler), jobs):
            gallery.append(video)
            if on_progress is not None:
                on_progress(len(gallery), len(jobs), video.path.name)
    heard = dict.fromkeys(sound_edits)
    if heard:
        queries = [_with_sound(query) for query in queries]
        sounding = [query for query in queries if query.heard is not None]
        for number, query in enumerate(sounding):
            other = sounding[number - 1]
            gallery += [_edit_sound(query, other, name, work / "gallery", filler) for name in (*heard, BOTH_KEPT)]
    families = {query.recording.family for query in queries}
    for recording in [*others, *distractors]:
        edit = REAL_COPY if recording.family in families else DISTRACTOR
        gallery.append(GalleryVideo(recording.path, recording.family, recording.scene, edit))
    return CopyMaterial(tuple(queries), tuple(gallery))


def _edit_copy(query: QueryClip, edit: str, folder: Path, filler: Path) -> GalleryVideo:
    folder.mkdir(parents=True, exist_ok=True)
    # The same whatever else is made in this folder, so that other choices of edits and recordings use it again.
    seed = zlib.crc32(f"{query.name} {edit}".encode())
    beside = f".{filler.stem}" if EDITS[edit].needs_filler else ""
    target = folder / f"{query.path.stem}.{edit}.{seed}.{_VERSION}{beside}.mp4"
    record = target.with_suffix(".json")
    if not (record.exists() and target.exists()):
        made = apply_edit(query.path, target, edit, seed=seed, filler=filler, threads=1)
        write_text(record, json.dumps({"segments": made.segments, "mirrored": made.mirrored}))
    truth = read_json(record)
    segments = tuple(
        EditedSegment(start, end, edited_start, edited_end, tuple(source_box), tuple(edited_box))
        for start, end, edited_start, edited_end, source_box, edited_box in truth["segments"]
    )
    recording = query.recording
    return GalleryVideo(target, recording.family, recording.scene, edit, query, segments, truth["mirrored"])


def _make_filler(work: Path, recordings: Iterable[Recording]) -> Path:
    """Unrelated footage as one file."""
    short = [recording for recording in recordings if recording.duration < _FILLER_LONGEST][:_FILLER_VIDEOS]
    made_of = [(str(recording.path.resolve()), recording.path.stat().st_size) for recording in short]
    target = work / f"filler-{hashlib.sha256(repr(made_of).encode()).hexdigest()[:8]}.mp4"
    if target.exists():
        return target
    work.mkdir(parents=True, exist_ok=True)

    def frames() -> Iterator[NDArray[np.uint8]]:
        for recording in short:
            count = max(1, round(recording.duration * _FILLER_RATE))
            for image in steady_frames(recording.path, 0.0, 1 / _FILLER_RATE, count, _FILLER_HEIGHT, threads=1):
                yield covering(image, _FILLER_WIDTH, _FILLER_HEIGHT)

    pictures = frames() if short else camera_flight(
        _FILLER_PHOTOGRAPH, rate=_FILLER_RATE, seconds=_FILLER_SECONDS, width=_FILLER_WIDTH, height=_FILLER_HEIGHT
    )  # fmt: skip
    write_video(target, pictures, rate=_FILLER_RATE, threads=1)
    return target


# Recordings, and the clips of them that are queries.


# Shorter recordings are not used as sources.
_SHORTEST = 3.8

# Queries are stored nearly losslessly, because copies are made from them.
_CRF = 14


@dataclass(frozen=True, slots=True)
class Recording:
    """A video of the material.

    Attributes:
        path: Path of the file.
        family: Recordings of one family are copies of each other.
        scene: Recordings of one scene were taken in front of the same background.
        duration: Duration in seconds.
    """

    path: Path
    family: str
    scene: str
    duration: float


@dataclass(frozen=True, slots=True)
class QueryClip:
    """A query, from which copies are made: a stretch of a recording as a file.

    Attributes:
        name: The recording's name and the number of the stretch.
        path: Path of the file.
        recording: The recording it was cut from.
        start: Start in the recording in seconds.
        end: End in the recording in seconds.
        heard: The same stretch with its sound, as another file; None if the recording has none.
    """

    name: str
    path: Path
    recording: Recording
    start: float
    end: float
    heard: Path | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ClipSize:
    """Number and size of the queries.

    Attributes:
        seconds: Length of a query; a shorter recording is one query.
        clips: Largest number of queries from one recording.
        short_side: Largest number of pixels along the shorter side.
        rate: Largest number of frames per second.
        recordings: Largest number of recordings, evenly spaced in the order of their names; None takes all.
    """

    seconds: float
    clips: int
    short_side: int
    rate: float
    recordings: int | None = None


FULL = ClipSize(seconds=20.0, clips=4, short_side=360, rate=30.0)

QUICK = ClipSize(seconds=8.0, clips=1, short_side=270, rate=12.0, recordings=6)


def find_recordings(folder: Path, *, left_out: Iterable[str] = ()) -> list[Recording]:
    """The videos in a folder and its subfolders, in the order of their names; each shows another scene.

    Args:
        folder: The folder.
        left_out: Names, without extension, of files to leave out.

    Raises:
        InvalidArgumentError: There is no video.
        MediaError: A video cannot be read.
    """
    unused = set(left_out)
    recordings = [
        Recording(path, str(path), str(path), probe(path).duration)
        for path in sorted(folder.rglob("*"))
        if path.suffix.lower() in VIDEO_EXTENSIONS and path.is_file() and path.stem not in unused
    ]
    if not recordings:
        raise InvalidArgumentError(f"{folder}: found no video")
    return recordings


def choose_queries(recordings: Sequence[Recording], size: ClipSize, folder: Path) -> list[QueryClip]:
    """Clips of the longest recording of each family, evenly spaced in it; `write_query` writes their files.

    Raises:
        InvalidArgumentError: No recording is long enough.
    """
    longest: dict[str, Recording] = {}
    for recording in recordings:
        if recording.duration >= _SHORTEST:
            best = longest.setdefault(recording.family, recording)
            if recording.duration > best.duration:
                longest[recording.family] = recording
    if not longest:
        raise InvalidArgumentError(f"no video is {_SHORTEST} s long; shorter ones cannot be edited")
    chosen = sorted(longest.values(), key=lambda recording: recording.path)
    if size.recordings is not None and size.recordings < len(chosen):
        chosen = [chosen[len(chosen) * number // size.recordings] for number in range(size.recordings)]
    return [query for recording in chosen for query in _clips(recording, size, folder)]


def write_query(query: QueryClip, size: ClipSize) -> None:
    """Write the file of a query, unless an earlier call did."""
    if query.path.exists():
        return
    query.path.parent.mkdir(parents=True, exist_ok=True)
    info = probe(query.recording.path)
    rate = Fraction(min(info.frame_rate, size.rate)).limit_denominator(1001)
    count = max(1, round((query.end - query.start) * rate))
    short_side = min(size.short_side, info.short_side)
    frames = steady_frames(query.recording.path, query.start, float(1 / rate), count, short_side, threads=1)
    write_video(query.path, frames, rate=rate, crf=_CRF, threads=1)


def _clips(recording: Recording, size: ClipSize, folder: Path) -> Iterator[QueryClip]:
    length = min(size.seconds, recording.duration)
    count = min(size.clips, max(1, int(recording.duration / length + 0.05)))
    room = recording.duration - length
    for number in range(count):
        start = room * number / (count - 1) if count > 1 else room / 2
        made_of = (str(recording.path.resolve()), recording.path.stat().st_size, start, length)
        digest = hashlib.sha256(repr((*made_of, size.short_side, size.rate)).encode()).hexdigest()[:8]
        name = f"{recording.path.stem}-{number}"
        yield QueryClip(name, folder / f"{name}.{digest}.mp4", recording, start, start + length)


# Edits of sound.

_Sound = NDArray[np.float32]

SOUND_EDIT_RATE = 44_100
"""Samples per second of sounds that are edited."""

# Loudness is made even before another sound is laid over it; how loud a sound is below noise, and the noise.
_EVEN, _BELOW_NOISE, _NOISE = (("dynaudnorm", "f=500:g=31"),), 0.5, 0.06
# Seconds of sound that a query must have.
_LEAST_SOUND = 3.0


@dataclass(frozen=True, slots=True)
class SoundEdit:
    """A way to change a sound.

    Attributes:
        filters: Filters of FFmpeg, by name and options, one after the other.
        under: What is laid over it afterwards: noise (10 dB below), or another sound as loud as it is.
        channel: The only channel that is kept; None keeps all.
        rate: Samples per second.
        is_mono: Whether channels are mixed into one.
        bit_rate: Of the compression.
        start, seconds: Which part is kept; None keeps all.
        speed: Seconds of the original per second of the edit.
    """

    filters: tuple[tuple[str, str], ...] = ()
    under: Literal["", "noise", "other"] = ""
    channel: int | None = None
    rate: int = SOUND_EDIT_RATE
    is_mono: bool = False
    bit_rate: int = 128_000
    start: float = 0.0
    seconds: float | None = None
    speed: float = 1.0


_SPEEDS = (0.8, 1.25, 1.5, 2.0)

SOUND_EDITS: dict[str, SoundEdit] = {
    "copy": SoundEdit(bit_rate=192_000),
    "32 kbit/s": SoundEdit(bit_rate=32_000),
    "left channel": SoundEdit(channel=0),
    "mono, 16 kHz": SoundEdit(is_mono=True, rate=16_000),
    "loud": SoundEdit((("acompressor", "threshold=0.05:ratio=8"), ("volume", "6dB"), ("treble", "g=6"))),
    "room": SoundEdit(
        (("aecho", "0.8:0.7:23|37|61|97:0.5|0.4|0.35|0.25"), ("highpass", "f=250"), ("lowpass", "f=5000"))
    ),
    "5 s": SoundEdit(start=11.37, seconds=5.0),
    "10 s": SoundEdit(start=7.777, seconds=10.0),
    **{f"tempo {speed}": SoundEdit((("atempo", str(speed)),), speed=speed) for speed in _SPEEDS},
    **{
        f"tape {speed}": SoundEdit((("asetrate", str(round(SOUND_EDIT_RATE * speed))),), speed=speed)
        for speed in _SPEEDS
    },
    "noise at 10 dB": SoundEdit(under="noise"),
    "other sound over it": SoundEdit(under="other"),
}
"""Edits of sound by name."""


def edit_sound(
    source: Path, target: Path, edit: SoundEdit, *, other: Path | None = None, pictures: Path | None = None
) -> None:
    """Write a sound after an edit, as AAC.

    Args:
        source: File whose first sound track is edited.
        target: File to write, m4a or mp4.
        edit: What is done.
        other: File with the sound that is laid over it, if the edit needs one.
        pictures: Video whose pictures go with it, as far as there is sound; None writes sound alone.

    Raises:
        MediaError: A file cannot be read.
    """
    samples = read_samples(source)
    first = round(edit.start * SOUND_EDIT_RATE)
    last = len(samples[0]) if edit.seconds is None else first + round(edit.seconds * SOUND_EDIT_RATE)
    if first >= len(samples[0]):  # a short one has no such part
        first, last = 0, len(samples[0])
    samples = samples[:, first:last]
    if edit.channel is not None:
        samples = samples[[edit.channel] * 2]
    samples = _filtered(samples, (*edit.filters, *(_EVEN if edit.under else ())))
    if edit.under == "noise":
        noise = _NOISE * (2 * np.random.default_rng(0).random(samples.shape[1], np.float32) - 1)
        samples = np.float32(_BELOW_NOISE) * samples + noise
    elif edit.under == "other" and other is not None:
        over = _filtered(read_samples(other), _EVEN)
        samples = samples.copy()
        shared = min(samples.shape[1], over.shape[1])
        samples[:, :shared] += over[:, :shared]
        samples *= 0.5
    _write_sound(target, samples, edit, pictures)


def read_samples(path: Path, start: float = 0.0, end: float | None = None) -> _Sound:
    """The first sound track of a file: [2, S] at `SOUND_EDIT_RATE`."""
    with av.open(str(path)) as container:
        resampler = AudioResampler(format="fltp", layout="stereo", rate=SOUND_EDIT_RATE)
        pieces = []
        for frame in container.decode(audio=0):
            if frame.time is not None and end is not None and frame.time > end:
                break
            frame.pts = None
            pieces += [piece.to_ndarray() for piece in resampler.resample(frame)]
        pieces += [piece.to_ndarray() for piece in resampler.resample(None)]
    samples = np.concatenate(pieces, axis=1).astype(np.float32) if pieces else np.zeros((2, 0), np.float32)
    first = round(start * SOUND_EDIT_RATE)
    return samples[:, first : None if end is None else round(end * SOUND_EDIT_RATE)]


def _filtered(samples: _Sound, filters: Sequence[tuple[str, str]]) -> _Sound:
    """Samples [2, S] after filters of FFmpeg."""
    if not filters:
        return samples
    graph = Graph()
    steps = [
        graph.add_abuffer(
            sample_rate=SOUND_EDIT_RATE, format="fltp", layout="stereo", time_base=Fraction(1, SOUND_EDIT_RATE)
        ),
        *(graph.add(name, options) for name, options in filters),
        graph.add("abuffersink"),
    ]
    for one, after in pairwise(steps):
        one.link_to(after)
    graph.configure()
    resampler = AudioResampler(format="fltp", layout="stereo", rate=SOUND_EDIT_RATE)
    pieces: list[_Sound] = []

    def pull() -> None:
        while True:
            try:
                made = steps[-1].pull()
            except (BlockingIOError, EOFError):
                return
            assert isinstance(made, av.AudioFrame)  # it is a graph of sound
            made.pts = None
            pieces.extend(piece.to_ndarray().astype(np.float32) for piece in resampler.resample(made))

    for first in range(0, samples.shape[1], 4096):
        frame = av.AudioFrame.from_ndarray(
            np.ascontiguousarray(samples[:, first : first + 4096]), format="fltp", layout="stereo"
        )
        frame.sample_rate, frame.pts, frame.time_base = SOUND_EDIT_RATE, first, Fraction(1, SOUND_EDIT_RATE)
        steps[0].push(frame)
        pull()
    steps[0].push(None)
    pull()
    pieces.extend(piece.to_ndarray().astype(np.float32) for piece in resampler.resample(None))
    return np.concatenate(pieces, axis=1).astype(np.float32)


def _write_sound(target: Path, samples: _Sound, edit: SoundEdit, pictures: Path | None) -> None:
    seconds = samples.shape[1] / SOUND_EDIT_RATE
    partial = target.with_name(f"{target.stem}.partial{target.suffix}")
    with av.open(str(partial), "w") as container:
        layout = "mono" if edit.is_mono else "stereo"
        source = None if pictures is None else av.open(str(pictures))
        video = None if source is None else container.add_stream_from_template(source.streams.video[0])
        sound = container.add_stream("aac", rate=edit.rate, layout=layout)
        sound.bit_rate = edit.bit_rate
        if source is not None and video is not None:
            for packet in source.demux(video=0):
                if packet.dts is not None and packet.time_base and float(packet.dts * packet.time_base) < seconds:
                    packet.stream = video
                    container.mux(packet)
            source.close()
        resampler = AudioResampler(format="fltp", layout=layout, rate=edit.rate, frame_size=1024)
        given = av.AudioFrame.from_ndarray(np.ascontiguousarray(samples.clip(-1, 1)), format="fltp", layout="stereo")
        given.sample_rate, given.pts, given.time_base = SOUND_EDIT_RATE, 0, Fraction(1, SOUND_EDIT_RATE)
        for frame in (*resampler.resample(given), *resampler.resample(None)):
            container.mux(sound.encode(frame))
        container.mux(sound.encode(None))
    partial.replace(target)


def _with_sound(query: QueryClip) -> QueryClip:
    """A query with its sound as a file of its own, if there is enough of it."""
    heard = query.path.with_name(f"{query.path.stem}.sound.mp4")
    if not heard.exists():
        with av.open(str(query.recording.path)) as container:
            if not container.streams.audio:
                return query
        samples = read_samples(query.recording.path, query.start, query.end)
        if samples.shape[1] < _LEAST_SOUND * SOUND_EDIT_RATE:
            return query
        _write_sound(heard, samples, SoundEdit(bit_rate=192_000), query.path)
    return replace(query, heard=heard)


def _edit_sound(query: QueryClip, other: QueryClip, name: str, folder: Path, filler: Path) -> GalleryVideo:
    assert query.heard is not None
    edit = SOUND_EDITS["32 kbit/s" if name == BOTH_KEPT else name]
    pictures = query.path if name == BOTH_KEPT else filler
    folder.mkdir(parents=True, exist_ok=True)
    label = "".join(letter if letter.isalnum() else "_" for letter in name)
    beside = f".{other.path.stem}" if edit.under == "other" else ""
    target = folder / f"{query.path.stem}.sound_{label}{beside}.{_VERSION}.{pictures.stem}.mp4"
    if not target.exists():
        edit_sound(query.heard, target, edit, other=other.heard, pictures=pictures)
    return GalleryVideo(target, query.recording.family, query.recording.scene, name, query)
