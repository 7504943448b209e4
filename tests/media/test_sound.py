"""Sound is decoded with exact times, whichever reader of the file provides the packets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.sounds import RATE, Samples, tune, write_sounds
from vidkin.errors import MediaError
from vidkin.features import Hearing, describe_sound
from vidkin.media import iter_frames, iter_sound, open_probed
from vidkin.media.sound import SOUND_RATE, Listener, SoundTrack


def heard(path: Path) -> list[Samples]:
    """Read all samples of each track of a file, starting at time 0."""
    tracks: list[list[tuple[int, Samples]]] = []

    def open_listener(_: SoundTrack) -> Listener:
        pieces: list[tuple[int, Samples]] = []
        tracks.append(pieces)
        return lambda first, samples: pieces.append((first, samples))

    iter_sound(path, open_listener)
    result = []
    for pieces in tracks:
        whole = np.zeros(max((first + len(part) for first, part in pieces), default=0), np.float32)
        for first, part in pieces:
            whole[first : first + len(part)] = part
        result.append(whole)
    return result


def click(seconds: float, at: float) -> Samples:
    """Silence with a single click."""
    samples = np.zeros(round(seconds * RATE), np.float32)
    samples[round(at * RATE) : round(at * RATE) + 8] = 0.9
    return samples


@pytest.mark.parametrize(("name", "codec"), [("a.wav", "pcm_s16le"), ("a.m4a", "aac"), ("a.mkv", "aac")])
def test_a_click_is_decoded_at_its_time(tmp_path: Path, name: str, codec: str) -> None:
    (samples,) = heard(write_sounds(tmp_path / name, [click(3, 1.25)], codec=codec))
    assert np.abs(samples).argmax() / SOUND_RATE == pytest.approx(1.25, abs=0.003)


def test_times_count_from_the_first_frame(tmp_path: Path) -> None:
    path = write_sounds(tmp_path / "late.mkv", [click(3, 1.0)], pictures="rocket", delay=0.7)
    (samples,) = heard(path)
    assert np.abs(samples).argmax() / SOUND_RATE == pytest.approx(1.7, abs=0.003)


@pytest.mark.parametrize("name", ["clip.mp4", "clip.mkv", "clip.ts"])
def test_sound_read_with_the_frames_equals_sound_read_alone(tmp_path: Path, name: str) -> None:
    path = write_sounds(tmp_path / name, [tune(6, seed=1)], pictures="rocket")
    with open_probed(path) as video:
        hearing = Hearing(video)
        count = sum(len(frames) for frames in iter_frames(video, rate=2))
        (beside,), damage = hearing.finish()
    (alone,) = describe_sound(path)
    assert damage == ""
    assert count == sum(len(frames) for frames in iter_frames(path, rate=2))
    assert len(alone) > 60
    # The container rounds the start of the frames to its ticks.
    assert np.isin(alone.codes, np.concatenate([beside.codes + shift for shift in (-128, 0, 128)])).mean() > 0.9


def test_each_track_is_read_and_the_default_one_is_named(tmp_path: Path) -> None:
    path = write_sounds(
        tmp_path / "two.mkv", [tune(4, seed=1), tune(4, seed=2)], pictures="rocket", languages=("eng", "deu")
    )
    tracks = describe_sound(path)
    assert [(track.language, track.is_default) for track in tracks] == [("eng", True), ("deu", False)]
    assert not np.array_equal(tracks[0].times, tracks[1].times)


def test_a_file_without_sound_is_refused(tmp_path: Path) -> None:
    path = write_sounds(tmp_path / "silent.mp4", [], pictures="rocket")
    with pytest.raises(MediaError, match="the file has no sound"):
        describe_sound(path)


def test_damaged_sound_does_not_affect_the_frames(tmp_path: Path) -> None:
    path = write_sounds(tmp_path / "clip.mkv", [tune(6, seed=1)], pictures="rocket", codec="libmp3lame")
    whole = path.read_bytes()
    with open_probed(path) as video:
        frames = sum(len(part) for part in iter_frames(video, rate=2))
    # Every MP3 sync word in the file is zeroed.
    broken = tmp_path / "broken.mkv"
    broken.write_bytes(whole.replace(b"\xff\xfb", b"\x00\x00").replace(b"\xff\xf3", b"\x00\x00"))
    with open_probed(broken) as video:
        hearing = Hearing(video)
        assert sum(len(part) for part in iter_frames(video, rate=2)) == frames
        _, damage = hearing.finish()
    assert damage.startswith("its sound is damaged: ")
    assert damage.endswith("skipped")
