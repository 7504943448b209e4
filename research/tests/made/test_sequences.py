"""Composed sequences: cuts are at their labels, transitions join two shots, and seeds determine everything."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support.labelled import picture
from tests.support.videos import encode, pan, photograph
from vidkin.errors import InvalidArgumentError
from vidkin.media import iter_planes, probe
from vidkin_research.made.edited_videos import COMPOSED_LABELS, build_composed
from vidkin_research.made.footage import Clip, Footage, read_footage
from vidkin_research.made.sequences import compose


@pytest.fixture(scope="module")
def footage(tmp_path_factory: pytest.TempPathFactory) -> Footage:
    folder = tmp_path_factory.mktemp("footage")
    clips = [
        encode(folder / f"{name}.mp4", pan(name, 60), rate=25) for name in ("coffee", "chelsea", "rocket", "astronaut")
    ]
    pictures = []
    for name in ("brick", "gravel"):
        Image.fromarray(photograph(name)).save(folder / f"{name}.png")
        pictures.append(folder / f"{name}.png")
    return read_footage(clips, pictures, height=36, width=64)


def test_footage_has_the_same_size(footage: Footage) -> None:
    assert [clip.luma.shape for clip in footage.clips] == [(60, 36, 64)] * 4
    assert [clip.name for clip in footage.clips][:2] == ["coffee.mp4", "chelsea.mp4"]
    assert all(picture.shape[0] == 3 and min(picture.shape[1:]) == 81 for picture in footage.photographs)


def test_seed_determines_the_sequence(footage: Footage) -> None:
    one, same, other = (compose(footage, 200, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.pictures, same.pictures)
    assert (one.hard, one.gradual) == (same.hard, same.gradual)
    assert (one.hard, one.gradual) != (other.hard, other.gradual)


def test_labels_are_ordered_and_do_not_overlap(footage: Footage) -> None:
    for seed in range(12):
        made = compose(footage, 300, seed=seed)
        assert made.pictures.shape == (300, 3, 36, 64)
        assert list(made.hard) == sorted(set(made.hard))
        assert all(0 < cut < 300 for cut in made.hard)
        taken = np.zeros(300, int)
        for first, last in made.gradual:
            assert 0 <= first <= last < 300
            taken[first : last + 1] += 1
        for cut in made.hard:
            taken[cut] += 1
        assert taken.max() == 1, "no frame belongs to two transitions"


def test_images_change_at_hard_cuts(footage: Footage) -> None:
    at_cuts, elsewhere = [], []
    for seed in range(8):
        made = compose(footage, 300, seed=seed, degrade=False)
        luma = made.pictures[:, 0].astype(float)
        change = np.abs(np.diff(luma, axis=0)).mean((1, 2))
        at_cuts += [change[cut - 1] for cut in made.hard]
        busy = {frame for first, last in made.gradual for frame in range(first - 1, last + 2)} | set(made.hard)
        elsewhere += [change[frame - 1] for frame in range(1, 300) if frame not in busy]
    assert len(at_cuts) > 20
    assert np.median(at_cuts) > 10 * np.median(elsewhere)


@pytest.mark.large
def test_all_kinds_of_transition_occur(footage: Footage) -> None:
    made = [compose(footage, 300, seed=seed) for seed in range(20)]
    lengths = [last - first + 1 for one in made for first, last in one.gradual]
    assert min(lengths) <= 6
    assert max(lengths) >= 30
    assert sum(len(one.hard) for one in made) > len(lengths)


def test_without_photographs_there_are_only_clips_and_cards(footage: Footage) -> None:
    bare = Footage(36, 64, footage.clips)
    assert len(compose(bare, 120, seed=3)) == 120


def test_footage_requires_clips_of_the_same_size() -> None:
    with pytest.raises(InvalidArgumentError, match="clips must contain at least one clip, got none"):
        Footage(36, 64, ())
    still = Clip("still.mp4", np.zeros((1, 36, 64), np.uint8), np.zeros((1, 2, 18, 32), np.uint8))
    with pytest.raises(InvalidArgumentError, match=r"still\.mp4 must be \[T, 36, 64\] with T at least 2, got"):
        Footage(36, 64, (still,))


def test_length_is_validated(footage: Footage) -> None:
    with pytest.raises(InvalidArgumentError, match="length must be at least 2 frames, got 1"):
        compose(footage, 1, seed=0)


def test_unreadable_photographs_are_skipped_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clip = encode(tmp_path / "clip.mp4", pan("coffee", 5), rate=25)
    text = tmp_path / "picture.png"
    text.write_text("no picture")
    good = picture(tmp_path / "good.png", (200, 100, 50), (160, 160))
    seen: list[tuple[int, int]] = []
    read = read_footage([clip], [text, good], on_progress=lambda *pair: seen.append(pair))
    assert [item.shape for item in read.photographs] == [(3, 162, 162)]
    assert seen == [(1, 3), (3, 3)]
    assert f"{text}: skipped, not readable as an image" in caplog.text


def test_labels_match_written_videos(tmp_path: Path, footage: Footage) -> None:
    done: list[tuple[int, int]] = []
    path = build_composed(tmp_path, footage, videos=2, frames=150, seed=5, on_progress=lambda *pair: done.append(pair))
    assert path == tmp_path / COMPOSED_LABELS
    assert done == [(1, 2), (2, 2)]
    labels = json.loads(path.read_text())["videos"]
    assert sorted(labels) == ["composed_000.mp4", "composed_001.mp4"]
    for name, entry in labels.items():
        info = probe(tmp_path / name)
        assert info.duration == pytest.approx(150 / 25, abs=0.05)
        luma = np.concatenate([block.luma for block in iter_planes(tmp_path / name)]).astype(float)
        assert len(luma) == entry["frames"] == 150
        assert entry["times"] == pytest.approx([cut / 25 for cut in entry["hard"]])


def test_variable_rate_preserves_cut_times(tmp_path: Path, footage: Footage) -> None:
    path = build_composed(tmp_path, footage, videos=1, frames=150, variable=True, seed=6)
    entry = json.loads(path.read_text())["videos"]["composed_000.mp4"]
    times = np.concatenate([block.timestamps for block in iter_planes(tmp_path / "composed_000.mp4")])
    assert np.diff(times).std() > 0.003
    assert entry["times"] == pytest.approx(times[entry["hard"]], abs=0.001)


def test_empty_list_of_videos_is_rejected(tmp_path: Path, footage: Footage) -> None:
    with pytest.raises(InvalidArgumentError, match="videos must be at least 1, got 0"):
        build_composed(tmp_path, footage, videos=0)
