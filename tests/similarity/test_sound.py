"""Audio fingerprints match copies of a recording, and nothing else."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from tests.support.sounds import Samples, noise, tune
from vidkin.errors import InvalidArgumentError
from vidkin.features import SoundDescriber, describe_sound
from vidkin.similarity import SOUND_RATE, PairTable, SoundFeatures
from vidkin.similarity.sound import (
    STEPS_A_SECOND,
    PairTables,
    SoundLine,
    SoundSettings,
    compare_sounds,
    fingerprint_of_sound,
    hypotheses,
    pair_keys,
)


def describe(samples: Samples, *, first: int = 0, pieces: int = 1) -> SoundFeatures:
    """Compute the landmarks of samples pushed in this many chunks."""
    describer = SoundDescriber()
    for part in np.array_split(samples, pieces):
        describer.push(first, part)
        first += len(part)
    return describer.finish()


def heard(seconds: float, seed: int) -> Samples:
    return tune(seconds, seed=seed, rate=SOUND_RATE)


def test_identical_sound_scores_1_over_its_full_length() -> None:
    sound = describe(heard(12, 1))
    result = compare_sounds(sound, sound)
    assert result.score == pytest.approx(1.0, abs=0.001)
    (segment,) = result.segments
    assert (segment.query_start, segment.target_start, segment.speed) == (0.0, 0.0, 1.0)
    assert segment.query_end == pytest.approx(12.0, abs=0.1)


def test_different_tunes_do_not_match() -> None:
    assert compare_sounds(describe(heard(20, 1)), describe(heard(20, 2))).score < 0.2


def test_excerpt_under_noise_is_located_to_a_fiftieth_of_a_second() -> None:
    whole = heard(30, 3)
    excerpt = whole[round(11.37 * SOUND_RATE) : round(17.37 * SOUND_RATE)]
    noisy = excerpt + noise(6, seed=1, level=0.3 * float(excerpt.std()), rate=SOUND_RATE)
    result = compare_sounds(describe(noisy), describe(whole))
    assert result.score >= 0.7
    assert result.segments[0].target_start - result.segments[0].query_start == pytest.approx(11.37, abs=0.02)


@pytest.mark.parametrize("speed", [0.8, 0.856, 1.1, 1.25, 1.5, 2.0])
def test_changed_tape_speed_is_found(speed: float) -> None:
    whole = heard(24, 4)
    places = np.arange(0, len(whole) - 1, speed)
    faster = np.interp(places, np.arange(len(whole)), whole).astype(np.float32)
    result = compare_sounds(describe(faster), describe(whole))
    assert result.score >= 0.7
    assert result.segments[0].speed == pytest.approx(speed, rel=0.003)
    # The reverse comparison, whose query has more landmarks per second of this recording.
    back = compare_sounds(describe(whole), describe(faster))
    assert back.score == pytest.approx(result.score, abs=0.05)
    assert back.segments[0].speed == pytest.approx(1 / speed, rel=0.003)
    assert back.segments[0].query_end == pytest.approx(result.segments[0].target_end, abs=0.3)


def test_both_of_two_mixed_sounds_are_found() -> None:
    one, other = heard(15, 5), heard(15, 6)
    both = describe(one + other)
    assert compare_sounds(describe(one), both).score >= 0.7
    assert compare_sounds(describe(other), both).score >= 0.7


def test_silence_has_no_landmarks_and_matches_nothing() -> None:
    silence = describe(np.zeros(5 * SOUND_RATE, np.float32))
    assert len(silence) == 0
    assert silence.length == 5.0
    assert compare_sounds(silence, describe(heard(5, 1))).score == 0.0


def test_landmarks_do_not_depend_on_the_chunks_of_samples() -> None:
    samples = heard(75, 7)
    whole, pieces = describe(samples), describe(samples, pieces=97)
    assert np.array_equal(whole.times, pieces.times)
    assert np.array_equal(whole.pitches, pieces.pitches)


def test_block_boundaries_do_not_change_landmarks() -> None:
    samples = heard(90, 8)
    moved = describe(np.concatenate([np.zeros(10 * SOUND_RATE, np.float32), samples]))
    plain = describe(samples)
    shifted = plain.codes + 128 * round(10 * STEPS_A_SECOND)
    assert np.isin(shifted, moved.codes).mean() > 0.98


def test_late_start_and_gap_are_reflected_in_the_times() -> None:
    describer, samples = SoundDescriber(), heard(10, 9)
    describer.push(5 * SOUND_RATE, samples[: 4 * SOUND_RATE])
    describer.push(200 * SOUND_RATE, samples[4 * SOUND_RATE :])
    sound = describer.finish()
    seconds = sound.times / STEPS_A_SECOND
    assert 4.9 <= seconds.min() < 6
    assert not ((seconds > 9.2) & (seconds < 199.8)).any()
    assert 200 < seconds.max() <= 206
    assert sound.length == 206.0


def test_landmarks_take_at_most_3_mb_per_hour() -> None:
    sound = describe(heard(60, 10))
    assert len(sound) * 4 * 60 < 500_000
    assert len(pair_keys(sound)[0][0]) * 4 * 60 < 1_000_000


def test_table_finds_the_track_of_an_excerpt() -> None:
    tracks = [describe(heard(20, seed)) for seed in range(20, 30)]
    table = PairTable.of(tracks)
    lines = table.lines(tracks[6].between(8, 14), limit=5)
    scores = {
        number: compare_sounds(tracks[6].between(8, 14), tracks[number], found).score for number, found in lines.items()
    }
    assert max(scores, key=lambda number: scores[number]) == 6
    assert scores[6] >= 0.7
    assert all(score < 0.2 for number, score in scores.items() if number != 6)


def test_table_with_wrong_offsets_is_refused() -> None:
    table = PairTable.of([describe(heard(5, 1))])
    table.check()
    offsets = table.offsets.copy()
    offsets[100] = 2**31
    with pytest.raises(ValueError, match="its offsets are invalid"):
        PairTable(offsets, table.positions, table.starts).check()


def test_combined_tables_find_the_same_lines_as_one_table() -> None:
    """This includes tables whose tracks are in another order or partly left out."""
    tracks = [describe(heard(20, seed)) for seed in range(40, 47)]
    whole = PairTable.of(tracks[:6])
    parts = PairTables.of(
        [
            PairTable.of([tracks[4], tracks[6], tracks[1]]),
            PairTable.of([]),
            PairTable.of([*tracks[2:4], *tracks[0:6:5]]),
        ],
        [np.array([4, -1, 1]), np.zeros(0, np.int64), np.array([2, 3, 0, 5])],
    )
    assert np.array_equal(parts.starts, whole.starts)
    for track in tracks:
        query = track.between(5, 13)
        assert parts.lines(query, limit=6) == whole.lines(query, limit=6)
    assert 3 in whole.lines(tracks[3], limit=6)


def test_landmark_arrays_of_different_lengths_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"must be \[N\] each, got \[2\], \[1\] and \[2\]"):
        SoundFeatures(np.zeros(2, np.int32), np.zeros(1, np.uint8), np.zeros(2, np.bool_))


@pytest.mark.parametrize(("steps_off", "pitches_off", "is_found"), [(0, 0, True), (1, 0, True), (2, 1, False)])
def test_exact_landmarks_are_evidence_for_a_copy_and_imprecise_ones_against_it(
    steps_off: int, pitches_off: int, is_found: bool
) -> None:
    """Every other landmark recurs, either within one step, as in a copy, or less precisely, as in a new performance."""
    random = np.random.default_rng(1)
    times, pitches = np.sort(random.integers(0, 625, 240)), random.integers(2, 124, 240)
    is_kept = np.arange(240) % 2 == 0
    again = np.where(is_kept, times + random.integers(-steps_off, steps_off + 1, 240), random.integers(0, 625, 240))
    moved = np.where(
        is_kept, pitches + random.integers(-pitches_off, pitches_off + 1, 240), random.permutation(pitches)
    )
    order = np.argsort(again.clip(0), kind="stable")
    strong = np.ones(240, np.bool_)
    one = SoundFeatures(times.astype(np.int32), pitches.astype(np.uint8), strong, 10.0)
    other = SoundFeatures(again.clip(0)[order].astype(np.int32), moved[order].astype(np.uint8), strong, 10.0)
    line = SoundLine(hypotheses()[0], 312.0, 312.0, 5)
    score = compare_sounds(one, other, [line]).score
    assert score >= 0.9 if is_found else score < 0.2


def test_other_settings_score_the_same_landmarks_differently() -> None:
    assert fingerprint_of_sound() != fingerprint_of_sound(SoundSettings(same=50.0))
    assert fingerprint_of_sound() == fingerprint_of_sound(SoundSettings())


def test_real_recordings_match_all_their_copies_and_nothing_else(shared_data: Path) -> None:
    """Narration, music, toys and room noise: pairs of files are of one recording or score below 0.2."""
    recordings = [
        ["odd/nasa_13013.mp4.audio.mp3", "odd/nasa_13013_mkv_duration_tag.mkv"],  # 8 and 16 kHz, MP3 and AAC
        ["videos/mdn/rabbit.mp4", "videos/mdn/rabbit320.mp4"],
        [f"videos/tmk/chair-{name}-bar.mp4" for name in ("19-sd", "22-sd-grey", "22-with-large-logo", "orig-22-sd")],
        [f"videos/tmk/pattern-{name}.mp4" for name in ("hd-no-bar", "longer-no-bar", "sd-grey-bar")],
        *([f"videos/mdn/{name}.mp4"] for name in ("crystal", "elf", "frog", "monster", "pig")),
        ["shots/big_buck_bunny_0_30.webm"],
        ["shots/sintel_trailer.mp4"],
    ]
    heard = {name: describe_sound(shared_data / name)[0] for names in recordings for name in names}
    family = {name: number for number, names in enumerate(recordings) for name in names}
    same, others = [], []
    for one, other in combinations(heard, 2):
        score = compare_sounds(heard[one], heard[other]).score
        (same if family[one] == family[other] else others).append(score)
    assert (len(same), len(others)) == (1 + 1 + 6 + 3, 18 * 17 // 2 - 11)
    assert min(same) >= 0.9
    assert max(others) < 0.2
    # The shorter file starts 3.64 s into the others.
    cut = compare_sounds(heard["videos/tmk/chair-19-sd-bar.mp4"], heard["videos/tmk/chair-22-sd-grey-bar.mp4"])
    assert cut.segments[0].target_start - cut.segments[0].query_start == pytest.approx(3.64, abs=0.03)
