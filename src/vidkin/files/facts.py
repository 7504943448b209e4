"""Read the properties, streams and tags of a video file, and find those that another file lacks."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import av
import numpy as np
from av.sidedata.sidedata import Type as SideData
from av.stream import Disposition

from vidkin._base.files import PathLike
from vidkin._base.values import Result, replace_controls
from vidkin.files.findings import Finding
from vidkin.files.languages import language_name
from vidkin.media.convert import HLG, PQ
from vidkin.media.probing import VideoInfo, open_probed
from vidkin.media.reader import PictureReader, open_video

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

Transfer = Literal["SDR", "PQ", "HLG"]
"""How a video encodes light: in standard dynamic range, or in one of the two high dynamic ranges."""

# Video streams that are not footage: covers, and previews stored by cameras and websites.
_NOT_FOOTAGE = Disposition.attached_pic | Disposition.timed_thumbnails | Disposition.still_image
# Data written by muxers and broadcasters, not by the person who filmed.
_TECHNICAL_DATA = frozenset({"timed_id3", "scte_35", "epg", "rtp", "dvd_nav_packet"})
# Words in the names of data tracks, and clearer names to show instead.
_DATA_NAMES = (("gopro", "GoPro data"), ("core media metadata", "camera metadata"), ("klv", "position data (KLV)"))
# Dates from cameras whose clock was never set: the epochs of QuickTime and Unix.
_UNSET_DATES = ("1904-01-01", "1970-01-01")
_DATE = re.compile(r"(\d{4})(?:[-:](\d\d)[-:](\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:[.,]\d+)?\s*(Z|[+-]\d\d:?\d\d)?)?)?")
_LOCATION = re.compile(r"([+-]\d+(?:\.\d+)?)([+-]\d+(?:\.\d+)?)")
# Tags with the same meaning, in lower case, most precise first.
_DATES = ("com.apple.quicktime.creationdate", "date_recorded", "creation_time", "date", "year")
_LOCATIONS = ("com.apple.quicktime.location.iso6709", "location", "location-eng", "xyz")
_MAKERS = ("com.apple.quicktime.make", "com.android.manufacturer", "make", "manufacturer")
_MODELS = ("com.apple.quicktime.model", "com.android.model", "model")
_TITLES = ("title", "com.apple.quicktime.title")
_ARTISTS = ("artist", "author", "com.apple.quicktime.author", "com.apple.quicktime.artist", "director")
_COMMENTS = ("comment", "description", "synopsis", "com.apple.quicktime.description", "com.apple.quicktime.comment")
# Maximum number of frame durations to read from the header, and of runs, spread over the file, to read them in.
_MAX_DURATIONS, _MAX_RUNS = 4096, 16
# Minimum fraction of frames that must be at least as fast as the fast rate.
_FAST_QUANTILE = 0.25


@dataclass(frozen=True, slots=True)
class SoundFacts(Result):
    """Properties of an audio track, from its header.

    Attributes:
        number: Index among the audio tracks, from 0.
        codec: Name of the codec; empty if unknown.
        channels: Number of channels.
        layout: Name of the channel layout, such as ``"5.1"``.
        sample_rate: Samples per second.
        language: Language in the header (ISO 639); empty if there is none.
        title: Title in the header; empty if there is none.
    """

    number: int
    codec: str
    channels: int
    layout: str
    sample_rate: int
    language: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class SubtitleFacts(Result):
    """Properties of a subtitle track, from its header.

    Attributes:
        number: Index among the subtitle tracks, from 0.
        codec: Name of the format; empty if unknown.
        language: Language in the header (ISO 639); empty if there is none.
        title: Title in the header; empty if there is none.
        packets: Number of packets in the header; None if it is not stated.
    """

    number: int
    codec: str
    language: str = ""
    title: str = ""
    packets: int | None = None


@dataclass(frozen=True, slots=True)
class Attachment(Result):
    """A file attached to a video file, such as a font.

    Attributes:
        name: File name.
        digest: Digest of the content.
    """

    name: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts(Result):
    """Properties, streams and tags of a video file.

    Attributes:
        path: The file.
        duration: Seconds from the start of the first frame to the end of the last.
        size_bytes: Size of the file.
        width, height: Display size in pixels: upright, with square pixels.
        frame_rate: Average number of frames per second.
        fast_rate: Frame rate of the fastest quarter of a file with a variable frame rate; otherwise `frame_rate`.
        is_variable: Whether the header lists frames of clearly different durations.
        is_interlaced: Whether the first frame consists of two fields.
        codec: Name of the codec.
        pixel_format: Name of the pixel format.
        bit_depth: Bits per stored sample.
        chroma: Color samples per luma sample: 1 for 4:4:4, 0.5 for 4:2:2, 0.25 for 4:2:0, 0 for gray.
        transfer: Transfer function.
        dynamic_metadata: Names of the dynamic metadata: "Dolby Vision", "HDR10+".
        has_alpha: Whether pixels can be transparent.
        has_captions: Whether the first frame carries closed captions.
        sounds: Audio tracks.
        subtitles: Subtitle tracks.
        second_videos: Size and codec of each additional video track with footage.
        covers: Number of cover images.
        chapters: Titles of the chapters, empty for chapters without a title.
        attachments: Attached files.
        data: Name of each data track worth keeping, such as "GoPro data".
        time_code: Time code of the first frame; empty if there is none.
        date: Recording date and time from the tags (ISO 8601); empty if there is none.
        location: Location from the tags (ISO 6709); empty if there is none.
        camera: Make and model; empty if unknown.
        title, artist, comment: Texts from the tags; empty if there are none.
    """

    path: str
    duration: float
    size_bytes: int
    width: int
    height: int
    frame_rate: float
    fast_rate: float
    is_variable: bool
    is_interlaced: bool
    codec: str
    pixel_format: str
    bit_depth: int
    chroma: float
    transfer: Transfer
    dynamic_metadata: tuple[str, ...] = ()
    has_alpha: bool = False
    has_captions: bool = False
    sounds: tuple[SoundFacts, ...] = ()
    subtitles: tuple[SubtitleFacts, ...] = ()
    second_videos: tuple[str, ...] = ()
    covers: int = 0
    chapters: tuple[str, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    data: tuple[str, ...] = ()
    time_code: str = ""
    date: str = ""
    location: str = ""
    camera: str = ""
    title: str = ""
    artist: str = ""
    comment: str = ""

    @property
    def pixels(self) -> int:
        """Number of pixels in a displayed frame."""
        return self.width * self.height


def read_facts(path: PathLike) -> FileFacts:
    """Read the properties, streams and tags of a video file, decoding only its first frame.

    Raises:
        MediaError: The file cannot be read as video.
    """
    name = os.fspath(path)
    with open_probed(name, threads=1) as video:
        begun = video.take()
        if begun is not None:
            first = next((frame for _, frames in begun.packets for frame in frames), None)
            return _build_facts(video.info, begun.container, begun.stream, first)
    # If the file cannot seek back to its start, open it again.
    with open_video(name, threads=1) as (container, stream):
        _, first = next(PictureReader(name, container, stream).pictures())
        return _build_facts(video.info, container, stream, first)


def _build_facts(info: VideoInfo, container: InputContainer, main: VideoStream, first: VideoFrame | None) -> FileFacts:
    fast, is_variable = _measure_fast_rate(main, info.frame_rate)
    pixels = av.VideoFormat(info.pixel_format)
    color = [part for part in pixels.components if not part.is_luma and not part.is_alpha]
    has_palette = pixels.has_palette or info.codec == "gif"
    transfer = main.codec_context.color_trc if first is None else first.color_trc
    tags = _merge_tags(container, main)
    chapters = tuple(_clean_text(chapter["metadata"].get("title", "")) for chapter in container.chapters())
    return FileFacts(
        path=info.path,
        duration=info.duration,
        size_bytes=info.size_bytes,
        width=info.width,
        height=info.height,
        frame_rate=info.frame_rate,
        fast_rate=fast,
        is_variable=is_variable,
        is_interlaced=info.interlaced,
        codec=info.codec,
        pixel_format=info.pixel_format,
        bit_depth=info.bit_depth,
        chroma=1.0 if pixels.is_rgb or has_palette else _read_chroma(pixels, bool(color)),
        transfer="PQ" if transfer == PQ else "HLG" if transfer == HLG else "SDR",
        dynamic_metadata=_list_dynamic_metadata(main, first),
        has_alpha=_has_alpha(pixels, main, first, has_palette=has_palette),
        has_captions=SideData.A53_CC in _list_side_data(first),
        sounds=tuple(_read_sound(number, stream) for number, stream in enumerate(container.streams.audio)),
        subtitles=tuple(
            SubtitleFacts(
                number,
                _read_codec(stream),
                _read_language(stream),
                _clean_text(stream.metadata.get("title", "")),
                stream.frames or None,
            )
            for number, stream in enumerate(container.streams.subtitles)
        ),
        second_videos=tuple(
            f"{stream.codec_context.width}x{stream.codec_context.height} {_read_codec(stream)}".strip()
            if getattr(stream, "codec_context", None) is not None
            else "unknown"
            for stream in container.streams.video
            if stream.index != main.index and not stream.disposition & _NOT_FOOTAGE
        ),
        covers=sum(bool(stream.disposition & Disposition.attached_pic) for stream in container.streams.video),
        chapters=chapters if len(chapters) > 1 or any(chapters) else (),
        attachments=tuple(
            Attachment(_clean_text(stream.name or ""), hashlib.blake2b(stream.data or b"", digest_size=16).hexdigest())
            for stream in container.streams.attachments
        ),
        data=_list_data(container, len(chapters)),
        time_code=tags.get("timecode", ""),
        date=_find_date(tags),
        location=_find_tag(tags, _LOCATIONS).rstrip("/"),
        camera=_find_camera(tags),
        title=_find_tag(tags, _TITLES),
        artist=_find_tag(tags, _ARTISTS),
        comment=_find_tag(tags, _COMMENTS),
    )


def _measure_fast_rate(stream: VideoStream, average: float) -> tuple[float, bool]:
    """Return the frame rate of the fastest quarter of the frames, and whether durations vary, from the file's index.

    MP4 lists every frame in its header. Matroska lists only key frames, so only the average rate is known.
    """
    entries = stream.index_entries
    if len(entries) < 3 or len(entries) < 0.9 * stream.frames or not stream.frames or stream.time_base is None:
        return average, False
    run = max(3, _MAX_DURATIONS // _MAX_RUNS)
    step = max(run, len(entries) // _MAX_RUNS)
    ticks = [
        later.timestamp - earlier.timestamp
        for start in range(0, len(entries), step)
        for earlier, later in pairwise([entries[row] for row in range(start, min(start + run + 1, len(entries)))])
    ]
    durations = np.array([tick for tick in ticks if tick > 0], float) * float(stream.time_base)
    if not len(durations):
        return average, False
    fast, slow = np.quantile(durations, (_FAST_QUANTILE, 0.95))
    # Phones record frames whose durations vary by a few percent.
    is_variable = bool(slow > 1.2 * fast)
    return (max(average, float(1 / fast)) if is_variable else average), is_variable


def _read_chroma(pixels: av.VideoFormat, has_color: bool) -> float:
    if not has_color:
        return 0.0
    side = 1 << 10
    return pixels.chroma_width(side) * pixels.chroma_height(side) / side**2


def _list_dynamic_metadata(main: VideoStream, first: VideoFrame | None) -> tuple[str, ...]:
    kinds = _list_side_data(first)
    found = []
    tag = str(getattr(main.codec_context, "codec_tag", ""))
    if tag in ("dvh1", "dvhe", "dva1", "dvav", "dav1") or kinds & {SideData.DOVI_RPU_BUFFER, SideData.DOVI_METADATA}:
        found.append("Dolby Vision")
    if SideData.DYNAMIC_HDR_PLUS in kinds:
        found.append("HDR10+")
    return tuple(found)


def _list_side_data(frame: VideoFrame | None) -> set[SideData]:
    found: Any = () if frame is None else frame.side_data
    return {found[row].type for row in range(len(found))}


def _has_alpha(pixels: av.VideoFormat, main: VideoStream, first: VideoFrame | None, *, has_palette: bool) -> bool:
    """Whether pixels can be transparent; with a palette (GIF), only if the first frame has transparent pixels."""
    if main.metadata.get("alpha_mode", main.metadata.get("ALPHA_MODE", "0")) == "1":
        return True  # WebM stores transparency separately from the decoded pixels
    if not any(part.is_alpha for part in pixels.components):
        return False
    if has_palette and first is not None:
        return bool((first.to_ndarray(format="rgba")[..., 3] < 255).any())
    return True


def _read_sound(number: int, stream: Any) -> SoundFacts:
    context = getattr(stream, "codec_context", None)
    if context is None:
        return SoundFacts(number, "", 0, "", 0, _read_language(stream), _clean_text(stream.metadata.get("title", "")))
    return SoundFacts(
        number,
        context.codec.canonical_name,
        context.layout.nb_channels,
        context.layout.name,
        context.sample_rate,
        _read_language(stream),
        _clean_text(stream.metadata.get("title", "")),
    )


def _read_codec(stream: Any) -> str:
    context = getattr(stream, "codec_context", None)
    return "" if context is None else str(context.codec.canonical_name)


def _read_language(stream: Any) -> str:
    language = _clean_text(stream.metadata.get("language", ""))
    return language if language_name(language) else ""


def _list_data(container: InputContainer, chapters: int) -> tuple[str, ...]:
    names = []
    for stream in container.streams.data:
        codec = str(stream.name or "")
        handler = _clean_text(stream.metadata.get("handler_name", ""))
        # QuickTime stores chapter titles as a text track; time codes are reported as tags.
        is_chapters = bool(chapters) and codec == "bin_data" and stream.frames == chapters
        if codec in _TECHNICAL_DATA or is_chapters or "timecode" in _lowercase_keys(stream.metadata):
            continue
        names_text = f"{codec} {handler}".lower()
        plain = next((name for word, name in _DATA_NAMES if word in names_text), "")
        names.append(plain or handler or (codec if codec != "bin_data" else "") or "data")
    return tuple(names)


def _lowercase_keys(tags: Mapping[str, str]) -> dict[str, str]:
    return {key.lower(): value for key, value in tags.items()}


def _merge_tags(container: InputContainer, main: VideoStream) -> dict[str, str]:
    """Merge all tags by lowercase name; tags of the file take precedence over tags of a stream."""
    of_data = [_lowercase_keys(stream.metadata) for stream in container.streams.data]
    merged = {key: value for tags in reversed(of_data) for key, value in tags.items() if key == "timecode"}
    merged |= _lowercase_keys(main.metadata) | _lowercase_keys(container.metadata)
    return {key: _clean_text(value) for key, value in merged.items()}


def _clean_text(text: str) -> str:
    return replace_controls(" ".join(text.split()))


def _find_tag(tags: Mapping[str, str], names: Sequence[str]) -> str:
    return next((tags[name] for name in names if tags.get(name)), "")


def _find_date(tags: Mapping[str, str]) -> str:
    for name in _DATES:
        found = _DATE.match(tags.get(name, ""))
        if found is None:
            continue
        year, month, day, clock, zone = found.groups()
        date = year if month is None else f"{year}-{month}-{day}"
        if date not in _UNSET_DATES and year != "0000":
            return date + (f"T{clock}{zone or ''}" if clock else "")
    return ""


def _find_camera(tags: Mapping[str, str]) -> str:
    maker, model = _find_tag(tags, _MAKERS), _find_tag(tags, _MODELS)
    # Many model names start with the name of the maker.
    return model if model.lower().startswith(maker.lower()) and model else f"{maker} {model}".strip()


# Factors within which a viewer sees no difference: 30 and 29.97 frames per second, or 1088 and 1080 lines. The first
# also covers 25 and 23.976, the rates of a film that was sped up or lost one frame in 25.
_SAME_RATE, _SAME_PIXELS = 1.05, 1.02
# In degrees, equal to a few hundred meters, because rewriting tags rounds locations.
_MAX_LOCATION_DIFFERENCE = 0.005
# Sample rate in Hz below which speech loses audible high frequencies (s, f).
_FULL_SAMPLE_RATE = 32_000
# In seconds. Dates of one recording can differ by rounding and by a time zone, which is a multiple of a quarter hour.
_MAX_DATE_DIFFERENCE, _QUARTER_HOUR, _MAX_ZONE = 2, 900, 14 * 3600


def compare_facts(kept: FileFacts, removed: FileFacts, *, speed: float = 1.0) -> tuple[Finding, ...]:
    """Find properties, streams and tags of a removed file that the kept file lacks.

    Audio is compared only by channels beyond stereo, languages and sample rates;
    `vidkin.files.sound_proof.prove_sound` compares its content, and whether left and right differ. More pixels can also
    come from an enlargement or borders, which only a comparison of frames can show.

    Args:
        kept: Facts of the file that stays.
        removed: Facts of the file to be removed.
        speed: Seconds in the kept file per second in the removed file, such as 25 / 23.976.

    Returns:
        One finding per missing property, stream or tag.
    """
    return (
        *_compare_frames(kept, removed, speed),
        *_compare_sounds(kept, removed),
        *_compare_streams(kept, removed),
        *_compare_tags(kept, removed),
    )


def _compare_frames(kept: FileFacts, removed: FileFacts, speed: float) -> list[Finding]:
    found = []
    if removed.pixels > _SAME_PIXELS * kept.pixels:
        text = f"{removed.width}x{removed.height} pixels, the kept file has {kept.width}x{kept.height}"
        found.append(Finding("resolution", text))
    elif removed.codec != "gif" and removed.chroma * removed.pixels > _SAME_PIXELS * kept.chroma * kept.pixels > 0:
        # A GIF has few colors, even though its pixel format has full chroma resolution.
        text = f"{_format_sampling(removed.chroma)} color samples, the kept file has {_format_sampling(kept.chroma)}"
        found.append(Finding("resolution", text, certainty=0.5))
    found += _compare_rates(kept, removed, speed)
    if removed.transfer != "SDR" and kept.transfer == "SDR":
        text = f"high dynamic range ({removed.transfer}), the kept file has standard range"
        found.append(Finding("dynamic-range", text))
    elif missing := [name for name in removed.dynamic_metadata if name not in kept.dynamic_metadata]:
        found.append(Finding("dynamic-range", f"{' and '.join(missing)} metadata, the kept file has none"))
    elif removed.bit_depth > kept.bit_depth:
        # An encoder may have padded a source that has fewer bits.
        text = f"{removed.bit_depth} bits a sample, the kept file has {kept.bit_depth}"
        found.append(Finding("dynamic-range", text, certainty=0.5))
    if removed.has_alpha and not kept.has_alpha:
        found.append(Finding("alpha", "transparency, the kept file has none"))
    return found


def _compare_rates(kept: FileFacts, removed: FileFacts, speed: float) -> list[Finding]:
    """Compare frame rates; an interlaced kept file shows two moments per frame."""
    kept_rate = kept.frame_rate * speed * (2 if kept.is_interlaced else 1)
    kept_fast = max(kept.fast_rate * speed, kept_rate)
    if removed.frame_rate > _SAME_RATE * kept_rate:
        text = f"{_format(removed.frame_rate)} frames a second, the kept file has {_format(kept.frame_rate)}"
        return [Finding("frame-rate", text)]
    if removed.fast_rate > 1.1 * kept_fast:
        text = f"up to {_format(removed.fast_rate)} frames a second, the kept file has {_format(kept.fast_rate)}"
        return [Finding("frame-rate", text, certainty=0.7)]
    if removed.is_interlaced and not kept.is_interlaced and 2 * removed.frame_rate > _SAME_RATE * kept_rate:
        # Film stored as fields shows only one moment per frame.
        text = (
            f"{_format(2 * removed.frame_rate)} fields a second (interlaced), "
            f"the kept file has {_format(kept.frame_rate)} frames"
        )
        return [Finding("frame-rate", text, certainty=0.7)]
    return []


def _compare_sounds(kept: FileFacts, removed: FileFacts) -> list[Finding]:
    found = []
    for language in dict.fromkeys(language_name(sound.language) for sound in removed.sounds):
        ours = [sound for sound in removed.sounds if language_name(sound.language) == language]
        # A kept track with no language in its header may be in any language.
        theirs = [s for s in kept.sounds if not language or language_name(s.language) in (language, "")]
        best = max(ours, key=lambda sound: sound.channels)
        rest = max((sound.channels for sound in theirs or kept.sounds), default=0)
        in_language = f" in {language}" if language else ""
        if best.channels > 2 and 0 < rest < best.channels:
            text = f"{best.layout} sound{in_language}, the kept file has {_format_channels(rest)}"
            found.append(Finding("sound", text))
        rates = [sound.sample_rate for sound in theirs or kept.sounds]
        # Opus always declares 48,000 Hz.
        stated = max((sound.sample_rate for sound in ours if sound.codec != "opus"), default=0)
        if rates and max(rates) < min(_FULL_SAMPLE_RATE, stated / 1.2):
            text = f"sound at {stated:,} samples a second{in_language}, the kept file has {max(rates):,}"
            found.append(Finding("sound", text, certainty=0.5))
    return found


def _compare_streams(kept: FileFacts, removed: FileFacts) -> list[Finding]:
    found = []
    if removed.second_videos:
        # Second tracks are not decoded, so their contents cannot be compared.
        text = f"a second video track ({', '.join(removed.second_videos)})"
        text += ", which was not compared" if kept.second_videos else ", the kept file has one track"
        found.append(Finding("picture", text, certainty=0.5 if kept.second_videos else 1.0))
    if missing := _describe_missing_subtitles(kept, removed):
        stated = "the kept file has none" if not kept.subtitles else f"the kept file has {len(kept.subtitles)}"
        found.append(Finding("subtitles", f"{missing}, {stated}"))
    if removed.has_captions and not kept.has_captions and not kept.subtitles:
        found.append(Finding("subtitles", "closed captions, the kept file has none"))
    own = {title for title in removed.chapters if title and not re.fullmatch(r"\D{0,12}\d+", title)}
    if len(removed.chapters) > len(kept.chapters) or own - set(kept.chapters):
        stated = f"the kept file has {len(kept.chapters) or 'none'}"
        if len(removed.chapters) <= len(kept.chapters):
            stated = "the kept file has chapters with other titles"
        found.append(Finding("chapters", f"{_format_count(len(removed.chapters), 'chapter')}, {stated}"))
    known = {attachment.digest for attachment in kept.attachments}
    if names := [attachment.name for attachment in removed.attachments if attachment.digest not in known]:
        text = f"{_format_count(len(names), 'attached file')} ({', '.join(names)}), which the kept file lacks"
        found.append(Finding("attachments", text))
    if removed.covers > kept.covers:
        stated = f"the kept file has {kept.covers or 'none'}"
        found.append(Finding("attachments", f"{_format_count(removed.covers, 'cover image')}, {stated}"))
    if names := [name for name in dict.fromkeys(removed.data) if removed.data.count(name) > kept.data.count(name)]:
        found.append(Finding("data", f"{' and '.join(names)}, the kept file has none"))
    if removed.time_code and not kept.time_code:
        found.append(Finding("data", f"time code {removed.time_code}, the kept file has none"))
    return found


def _describe_missing_subtitles(kept: FileFacts, removed: FileFacts) -> str:
    """Describe the subtitle languages in which the removed file has more tracks; empty if there are none.

    Kept tracks without a language can stand for any language.
    """
    spare = sum(not language_name(track.language) for track in kept.subtitles)
    missing = []
    for language in dict.fromkeys(language_name(track.language) for track in removed.subtitles):
        count = sum(language_name(track.language) == language for track in removed.subtitles)
        count -= sum(language_name(track.language) == language for track in kept.subtitles) if language else 0
        # Tracks without a language can match any kept track.
        taken = min(max(count, 0), spare if language else len(kept.subtitles))
        spare -= taken if language else 0
        if count > taken:
            missing.append(f"{_format_count(count - taken, 'subtitle track')}{f' in {language}' if language else ''}")
    return " and ".join(missing)


def _compare_tags(kept: FileFacts, removed: FileFacts) -> list[Finding]:
    found = []
    if removed.date and not kept.date:
        found.append(Finding("metadata", f"the date {removed.date}, the kept file has no date"))
    elif removed.date and _is_earlier(removed.date, kept.date):
        # A copy has the date when it was sent or converted; its source has the recording date.
        found.append(Finding("metadata", f"the date {removed.date}, the kept file has a later one, {kept.date}"))
    if removed.location and not kept.location:
        found.append(Finding("metadata", f"taken at {removed.location}, the kept file has no location"))
    elif removed.location and not _is_same_location(removed.location, kept.location):
        found.append(Finding("metadata", f"taken at {removed.location}, the kept file at {kept.location}"))
    named = (
        ("camera", removed.camera, kept.camera),
        ("title", removed.title, kept.title),
        ("artist", removed.artist, kept.artist),
        ("comment", removed.comment, kept.comment),
    )
    for name, ours, theirs in named:
        if ours and not theirs:
            found.append(Finding("metadata", f"{name} {_shorten(ours)!r}, the kept file has no {name}"))
    return found


def _is_earlier(date: str, other: str) -> bool:
    """Whether a date is clearly before another; if one is less precise, both are compared at that precision."""
    moment, other_moment = _parse_date(date), _parse_date(other)
    if moment is not None and other_moment is not None:
        difference = (other_moment - moment).total_seconds()
        off = difference % _QUARTER_HOUR
        is_zone = difference <= _MAX_ZONE and min(off, _QUARTER_HOUR - off) <= _MAX_DATE_DIFFERENCE
        return difference > _MAX_DATE_DIFFERENCE and not is_zone
    length = min(len(date.partition("T")[0]), len(other.partition("T")[0]))
    return date[:length] < other[:length]


def _parse_date(date: str) -> datetime | None:
    if "T" not in date:
        return None
    try:
        moment = datetime.fromisoformat(date)
    except ValueError:
        return None
    # Times without a zone are local times; _is_earlier tolerates the offset of any zone.
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _is_same_location(location: str, other: str) -> bool:
    first, second = _LOCATION.match(location), _LOCATION.match(other)
    if first is None or second is None:
        return location == other
    pairs = zip(first.groups(), second.groups(), strict=True)
    return all(abs(float(one) - float(two)) <= _MAX_LOCATION_DIFFERENCE for one, two in pairs)


def _format_count(number: int, thing: str) -> str:
    if number != 1:
        return f"{number} {thing}s"
    return f"an {thing}" if thing[0] in "aeiou" else f"a {thing}"


def _format_channels(number: int) -> str:
    return {1: "mono", 2: "stereo"}.get(number, f"{number} channels")


def _format_sampling(chroma: float) -> str:
    return {1.0: "4:4:4", 0.5: "4:2:2", 0.25: "4:2:0"}.get(chroma, f"{chroma:.2g}")


def _format(value: float) -> str:
    return f"{value:.5g}" if abs(value - round(value)) > 0.005 else f"{round(value)}"


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"
