"""Properties other than the frames that distinguish copies: frame rate, audio tracks, subtitles, date."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vidkin._base.values import Result
from vidkin.files.languages import language_name

if TYPE_CHECKING:
    from vidkin.files.facts import FileFacts


@dataclass(frozen=True, slots=True)
class Traits(Result):
    """Properties other than the frames that distinguish copies, formatted for tables.

    Attributes:
        frame_rate: Frames per second.
        dynamic_range: For example "HDR10", "HLG" or "10 bit"; empty for 8-bit SDR.
        sounds: Description of each audio track, such as "English 5.1".
        channels: Total number of audio channels.
        subtitles: Language of each subtitle track, or "subtitles" if it is unknown.
        streams: Total number of subtitle tracks, chapters, attachments, covers and data tracks.
        date, location, camera: Metadata of the file; empty if not present.
    """

    frame_rate: float = 0.0
    dynamic_range: str = ""
    sounds: tuple[str, ...] = ()
    channels: int = 0
    subtitles: tuple[str, ...] = ()
    streams: int = 0
    date: str = ""
    location: str = ""
    camera: str = ""

    @classmethod
    def of(cls, facts: FileFacts) -> Traits:
        """Derive the traits of a file from its facts."""
        transfer = facts.transfer.upper() if facts.transfer not in ("sdr", "SDR") else ""
        depth = f"{facts.bit_depth} bit" if facts.bit_depth > 8 else ""
        return cls(
            facts.frame_rate,
            transfer or depth,
            tuple(f"{language_name(sound.language)} {_layout(sound.channels)}".strip() for sound in facts.sounds),
            sum(sound.channels for sound in facts.sounds),
            tuple(language_name(one.language) or "subtitles" for one in facts.subtitles),
            len(facts.subtitles) + len(facts.chapters) + len(facts.attachments) + facts.covers + len(facts.data),
            facts.date,
            facts.location,
            facts.camera,
        )


def _layout(channels: int) -> str:
    return {1: "mono", 2: "stereo", 6: "5.1", 8: "7.1"}.get(channels, f"{channels} channels")
