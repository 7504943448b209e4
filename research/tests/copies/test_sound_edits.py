"""Audio edits, and matches of copies that keep either picture or sound."""

from __future__ import annotations

from pathlib import Path

import av
import pytest

from tests.cli.conftest import run
from tests.support.sounds import tune, write_sounds
from vidkin.features.sound import describe_sound
from vidkin.similarity.sound import compare_sounds
from vidkin_research.copies.material import BOTH_KEPT
from vidkin_research.copies.sound_edits import SOUND_EDITS, edit_sound, read_samples


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sounds(tmp_path_factory.mktemp("clip") / "clip.m4a", [tune(20, seed=1, rate=44_100)], rate=44_100)


@pytest.mark.parametrize("name", ["copy", "left channel", "mono, 16 kHz", "5 s", "tempo 1.25", "tape 0.8", "room"])
def test_edited_sound_has_the_expected_length_and_is_found(clip: Path, tmp_path: Path, name: str) -> None:
    edit, target = SOUND_EDITS[name], tmp_path / "edited.m4a"
    edit_sound(clip, target, edit)
    with av.open(str(target)) as container:
        stream = container.streams.audio[0]
        assert stream.rate == edit.rate
        assert stream.layout.name == ("mono" if edit.is_mono else "stereo")
    seconds = read_samples(target).shape[1] / 44_100
    assert seconds == pytest.approx((edit.seconds or 20.0) / edit.speed, abs=0.15)
    found = compare_sounds(describe_sound(clip)[0], describe_sound(target)[0])
    assert found.score > 0.7
    segment = found.segments[0]
    middle = (segment.query_start + segment.query_end) / 2
    expected = (middle - edit.start) / edit.speed
    assert (segment.target_start + segment.target_end) / 2 == pytest.approx(expected, abs=0.05)


def test_other_sound_is_mixed_in_at_the_same_loudness(clip: Path, tmp_path: Path) -> None:
    quiet = 0.5 * tune(20, seed=2, rate=44_100)
    other = write_sounds(tmp_path / "other.m4a", [quiet], rate=44_100)
    edit_sound(clip, tmp_path / "mixed.m4a", SOUND_EDITS["other sound over it"], other=other)
    mixed = describe_sound(tmp_path / "mixed.m4a")[0]
    scores = [compare_sounds(describe_sound(file)[0], mixed).score for file in (clip, other)]
    assert min(scores) > 0.7


@pytest.mark.large
def test_benchmark_reports_copies_found_by_frames_and_by_sound(tmp_path: Path) -> None:
    """Per clip: two audio edits over other frames, one video edit without sound, and one copy of both."""
    videos = tmp_path / "videos"
    videos.mkdir()
    for seed, name in enumerate(("rocket", "coffee")):
        write_sounds(videos / f"{name}.mkv", [tune(9, seed=seed)], pictures=name)
    told = run(
        *("benchmark", "copies", videos, "--quick", "--work", tmp_path / "work", "-f", "json"),
        *("--edit", "crop", "--edit", "copy", "--edit", "tempo 1.25"),
    ).json
    rules = {figures["system"]: figures for figures in told["witnesses"]}
    assert list(rules) == ["picture", "sound", "either", "both"]
    found = {rule: figures["everything"]["reported"] for rule, figures in rules.items()}
    # Four copies of each of two clips.
    assert rules["picture"]["everything"]["copies"] == 8
    assert found == {"picture": 4, "sound": 6, "either": 8, "both": 2}
    by_edit = {group["name"]: group["reported"] for group in rules["both"]["edits"]}
    assert by_edit == {"crop": 0, "copy": 0, "tempo 1.25": 0, BOTH_KEPT: 2}
    # Picture-only metrics are computed on picture-only edits.
    (figures,) = told["figures"]
    assert figures["everything"]["copies"] == 2
    assert [group["name"] for group in figures["edits"]] == ["crop"]
