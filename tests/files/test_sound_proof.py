"""The sound of a removed file is proven to be in the kept file, or reported as missing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import av
import numpy as np
import pytest

from tests.support.sounds import RATE, Samples, noise, tune, write_sounds
from vidkin.errors import InvalidArgumentError
from vidkin.files import Finding, TimeStretch
from vidkin.files.sound_packets import find_same_packets
from vidkin.files.sound_proof import prove_sound
from vidkin.files.stretches import describe_range, extend_stretches

SECONDS = 12.0
WHOLE = [TimeStretch(0.0, SECONDS, 0.0)]
MUSIC = tune(SECONDS, seed=1)


def voice(seconds: float, *, seed: int, rate: int = RATE) -> Samples:
    """Synthesize syllables with gliding pitch, changing resonances and pauses."""
    random = np.random.default_rng(seed)
    samples = np.zeros(round(seconds * rate) + rate, np.float32)
    at = 0.0
    while at < seconds:
        length = random.uniform(0.12, 0.3)
        times = np.arange(round(length * rate)) / rate
        phase = 2 * np.pi * np.cumsum(random.uniform(90, 220) * (1 + random.uniform(-0.2, 0.2) * times / length)) / rate
        tones = random.uniform(300, 800), random.uniform(900, 2200)
        pitch = phase[-1] / (2 * np.pi * length)
        syllable = sum(
            sum(1 / (1 + ((pitch * k - tone) / 100) ** 2) for tone in tones) * np.sin(k * phase) for k in range(1, 25)
        )
        envelope = np.minimum(1, np.minimum(times / 0.03, (length - times) / 0.05))
        first = round(at * rate)
        samples[first : first + len(times)] += 0.15 * syllable * envelope
        at += length + (random.uniform(0.1, 0.3) if random.random() < 0.2 else 0.0)
    return samples[: round(seconds * rate)]


def write(path: Path, *tracks: Samples, codec: str = "aac", bit_rate: int = 64_000, **more: object) -> Path:
    return write_sounds(path, tracks, pictures="coffee", is_still=True, codec=codec, bit_rate=bit_rate, **more)  # type: ignore[arg-type]


def replace_samples(samples: Samples, start: float, end: float, other: Samples | float) -> Samples:
    """Replace the samples between two times with other sound."""
    changed = samples.copy()
    part = slice(round(start * RATE), round(end * RATE))
    changed[part] = other[part] if isinstance(other, np.ndarray) else other
    return changed


def texts(findings: Sequence[Finding]) -> list[str]:
    assert {finding.kind for finding in findings} <= {"sound"}
    return [finding.text for finding in findings]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("sound") / "original.mkv", MUSIC, codec="pcm_s16le")


@pytest.mark.parametrize(
    ("codec", "suffix", "bit_rate"),
    [("aac", ".mp4", 48_000), ("libmp3lame", ".mkv", 48_000), ("libopus", ".mkv", 48_000)],
)
def test_reencoded_sound_is_proven_in_both_directions(
    tmp_path: Path, original: Path, codec: str, suffix: str, bit_rate: int
) -> None:
    copy = write(tmp_path / f"copy{suffix}", MUSIC, codec=codec, bit_rate=bit_rate)
    assert prove_sound(original, copy, WHOLE) == prove_sound(copy, original, WHOLE) == ()


def test_changes_in_volume_delay_and_drift_are_not_a_loss(tmp_path: Path, original: Path) -> None:
    drifting = np.interp(np.arange(0, len(MUSIC), 1.0002), np.arange(len(MUSIC)), MUSIC).astype(np.float32)
    copies = [
        write(tmp_path / "quiet.mkv", 0.3 * MUSIC),
        write(tmp_path / "late.mkv", MUSIC, delay=0.1),
        write(tmp_path / "drifting.mkv", drifting),
    ]
    assert [prove_sound(copy, original, WHOLE) for copy in copies] == [(), (), ()]


def test_noticeable_delay_is_a_loss(tmp_path: Path, original: Path) -> None:
    late = write(tmp_path / "late.mkv", np.concatenate([np.zeros(RATE, np.float32), MUSIC]))
    assert texts(prove_sound(late, original, WHOLE)) == ["its sound is not in the kept file"]
    assert prove_sound(late, original, [TimeStretch(0.0, SECONDS, 1.0)]) == ()


@pytest.mark.parametrize("length", [0.5, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("start", [0.0, 4.3])
def test_replaced_sound_is_found(tmp_path: Path, original: Path, length: float, start: float) -> None:
    kept = write(tmp_path / "kept.mkv", replace_samples(MUSIC, start, start + length, tune(SECONDS, seed=2)))
    (finding,) = prove_sound(kept, original, WHOLE)
    assert "its sound is different" in finding.text
    assert finding.start == pytest.approx(start, abs=0.3)
    assert finding.end == pytest.approx(start + length, abs=0.3)


@pytest.mark.parametrize("length", [0.5, 2.0])
def test_muted_segment_is_found(tmp_path: Path, original: Path, length: float) -> None:
    kept = write(tmp_path / "kept.mkv", replace_samples(MUSIC, 5.1, 5.1 + length, 0.0))
    (finding,) = prove_sound(kept, original, WHOLE)
    assert "is silent in the kept file" in finding.text
    assert finding.start == pytest.approx(5.1, abs=0.3)


def test_voice_over_music_is_found(tmp_path: Path, original: Path) -> None:
    spoken = MUSIC + replace_samples(np.zeros_like(MUSIC), 3.0, 5.0, voice(SECONDS, seed=1))
    kept = write(tmp_path / "kept.mkv", spoken)
    (finding,) = prove_sound(kept, original, WHOLE)
    # The voice pauses here.
    assert finding.start == pytest.approx(3.0, abs=0.6)
    assert finding.end == pytest.approx(5.0, abs=0.6)


def test_another_language_over_the_same_music_is_found(tmp_path: Path) -> None:
    kept = write(tmp_path / "kept.mkv", 0.4 * MUSIC + voice(SECONDS, seed=1))
    removed = write(tmp_path / "removed.mkv", 0.4 * MUSIC + voice(SECONDS, seed=2))
    assert prove_sound(kept, removed, WHOLE)


def test_sound_that_continues_longer_is_found(tmp_path: Path, original: Path) -> None:
    kept = write(tmp_path / "kept.mkv", MUSIC[: round(7.8 * RATE)])
    (finding,) = prove_sound(kept, original, WHOLE)
    assert finding.text in ("its sound is 4.2 s longer", "its sound is 4.3 s longer")
    assert finding.end == pytest.approx(SECONDS, abs=0.1)
    assert prove_sound(original, kept, WHOLE) == ()


def test_missing_track_is_reported_by_language(tmp_path: Path) -> None:
    one, other = voice(SECONDS, seed=1), voice(SECONDS, seed=2)
    removed = write(tmp_path / "removed.mkv", one, other, languages=["eng", "ger"])
    single = write(tmp_path / "single.mkv", one, languages=["eng"])
    swapped = write(tmp_path / "swapped.mkv", other, one, languages=["de", "en"])
    unmarked = write(tmp_path / "unmarked.mkv", other, one)
    assert texts(prove_sound(single, removed, WHOLE)) == [
        "the sound of the German track is not in the kept file",
        "a track marked as German, the kept file has none",
    ]
    assert prove_sound(swapped, removed, WHOLE) == prove_sound(removed, single, WHOLE) == ()
    assert texts(prove_sound(unmarked, removed, WHOLE)) == [
        "a track marked as English, the kept file has none",
        "a track marked as German, the kept file has none",
    ]
    assert prove_sound(write(tmp_path / "bare.mkv", one), single, WHOLE) == ()


def test_silent_film_lacks_any_sound_that_is_not_silence(tmp_path: Path, original: Path) -> None:
    mute = write(tmp_path / "mute.mkv")
    silent = write(tmp_path / "silent.mkv", noise(SECONDS, seed=1, level=1e-4))
    assert texts(prove_sound(mute, original, WHOLE)) == ["its sound, the kept file has no sound"]
    assert texts(prove_sound(silent, original, WHOLE)) == ["its sound is not in the kept file"]
    assert prove_sound(original, mute, WHOLE) == prove_sound(mute, silent, WHOLE) == ()
    assert prove_sound(original, silent, WHOLE) == ()


def test_mono_mix_does_not_contain_stereo(tmp_path: Path) -> None:
    one, other = voice(SECONDS, seed=1), voice(SECONDS, seed=2)
    both = np.stack([one, other], axis=1)
    mono = write(tmp_path / "mono.mkv", (one + other) / 2)
    double = write(tmp_path / "double.mkv", np.stack([one, one], axis=1))
    removed = write(tmp_path / "removed.mkv", both, bit_rate=96_000)
    stereo = write(tmp_path / "stereo.mp4", 0.5 * both, bit_rate=64_000)
    assert texts(prove_sound(mono, removed, WHOLE)) == ["its sound is stereo, the kept file has it in mono"]
    assert prove_sound(double, removed, WHOLE)
    assert prove_sound(stereo, removed, WHOLE) == ()
    assert prove_sound(write(tmp_path / "one.mkv", one), double, WHOLE) == ()


def test_reordered_segments_are_followed(tmp_path: Path, original: Path) -> None:
    half = round(6 * RATE)
    removed = write(tmp_path / "removed.mkv", np.concatenate([MUSIC[half:], MUSIC[:half]]))
    turned = [TimeStretch(0.0, 6.0, 6.0), TimeStretch(6.0, 12.0, 0.0)]
    assert prove_sound(original, removed, turned) == ()
    assert prove_sound(original, removed, WHOLE)


@pytest.mark.parametrize("suffix", [".mkv", ".mp4", ".ts"])
def test_seeking_backward_works_in_any_container(tmp_path: Path, original: Path, suffix: str) -> None:
    """Read the end, then the start, which is no longer buffered."""
    long = tune(50, seed=3)
    kept = write(tmp_path / f"kept{suffix}", long, delay=0.1)  # .ts does not allow negative times
    removed = write(tmp_path / "removed.mkv", np.concatenate([long[45 * RATE :], long[: 5 * RATE]]))
    assert prove_sound(kept, removed, [TimeStretch(0.0, 5.0, 45.0), TimeStretch(5.0, 10.0, 0.0)]) == ()


@pytest.mark.parametrize("speed", [25 / 23.976, 0.5])
def test_sound_sped_up_together_with_its_pitch_is_proven(tmp_path: Path, original: Path, speed: float) -> None:
    faster = np.interp(np.arange(0, len(MUSIC), speed), np.arange(len(MUSIC)), MUSIC).astype(np.float32)
    removed = write(tmp_path / "removed.mkv", faster)
    assert prove_sound(original, removed, [TimeStretch(0.0, SECONDS / speed, 0.0, speed)]) == ()


def test_sound_before_the_first_frame_is_compared(tmp_path: Path) -> None:
    """In both files, the frames begin 2 s after the sound."""
    early = [
        late_frames(tmp_path / f"{n}.mkv", samples)
        for n, samples in enumerate((MUSIC, replace_samples(MUSIC, 0, 1.5, 0.0)))
    ]
    time_map = [TimeStretch(0.0, SECONDS - 2, 0.0)]
    assert prove_sound(early[0], early[1], time_map) == ()
    assert len(prove_sound(early[1], early[0], time_map)) == 1


def late_frames(path: Path, samples: Samples) -> Path:
    """Write sound, and frames that begin 2 s later."""
    source = write(path.with_suffix(".source.mkv"), samples)
    with av.open(str(source)) as given, av.open(str(path), "w") as container:
        streams = {stream.index: container.add_stream_from_template(stream) for stream in given.streams}
        for packet in given.demux():
            if packet.dts is None or packet.pts is None:
                continue
            if packet.stream.type == "video":
                assert packet.time_base is not None
                packet.pts, packet.dts = (round(time + 2 / packet.time_base) for time in (packet.pts, packet.dts))
            packet.stream = streams[packet.stream_index]
            container.mux(packet)
    return path


def test_identical_packets_are_proven_without_decoding(tmp_path: Path) -> None:
    source = write(tmp_path / "source.mp4", MUSIC, voice(SECONDS, seed=1))
    copy = tmp_path / "copy.mkv"
    with av.open(str(source)) as given, av.open(str(copy), "w") as container:
        streams = {stream.index: container.add_stream_from_template(stream) for stream in given.streams}
        for packet in given.demux():
            if packet.dts is not None:
                packet.stream = streams[packet.stream_index]
                container.mux(packet)
    whole = list(extend_stretches(WHOLE))
    assert find_same_packets(source, copy, whole) == {0: 0, 1: 1}
    assert find_same_packets(source, copy, list(extend_stretches([TimeStretch(0.0, SECONDS, 1.0)]))) == {}
    assert prove_sound(source, copy, WHOLE) == ()
    other = write(tmp_path / "other.mkv", MUSIC, codec="libmp3lame")
    assert find_same_packets(source, other, whole) == {}


def test_progress_reaches_the_total(tmp_path: Path, original: Path) -> None:
    shares: list[float] = []
    copy = write(tmp_path / "copy.mkv", MUSIC)
    prove_sound(original, copy, WHOLE, on_progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_time_map_must_not_be_empty(original: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="time_map must have at least one stretch, got none"):
        prove_sound(original, original, [])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((2.0, 2.0, 0.0), "removed_start must be before removed_end, got 2.0 and 2.0"),
        ((0.0, 2.0, 0.0, 0.0), "speed must be above 0, got 0.0"),
    ],
)
def test_segments_are_checked(values: tuple[float, ...], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        TimeStretch(*values)


def test_time_ranges_are_formatted_for_display() -> None:
    assert describe_range(9, 14.04) == "0:09.0-0:14.0"
    assert describe_range(59.96, 3725) == "1:00.0-1:02:05.0"
