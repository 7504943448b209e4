"""The sample videos of the demo."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vidkin.datasets import SampleCollection, build_samples, write_copy
from vidkin.errors import InvalidArgumentError
from vidkin.media import probe, read_frames

SMALL = {
    "videos": ("astronaut", "coffee"),
    "copies": (("coffee", "mirror"), ("astronaut", "faster")),
    "rate": 10,
    "width": 128,
    "height": 96,
}


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> SampleCollection:
    return build_samples(tmp_path_factory.mktemp("samples"), **SMALL)  # type: ignore[arg-type]


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_samples_have_videos_copies_and_a_query(samples: SampleCollection) -> None:
    assert [path.name for path in samples.videos] == ["astronaut.mp4", "coffee.mp4"]
    assert [(copy.name, source.name) for copy, source in samples.copies] == [
        ("coffee-mirror.mp4", "coffee.mp4"),
        ("astronaut-faster.mp4", "astronaut.mp4"),
    ]
    assert {path.parent for path in samples.videos} == {samples.videos_folder}
    assert {copy.parent for copy, _ in samples.copies} == {samples.copies_folder}
    assert samples.built == 2 + 2 + 1
    for path in samples.videos:
        info = probe(path)
        assert (info.width, info.height) == (128, 96)
        assert info.duration == pytest.approx(10.0, abs=0.01)


def test_copies_are_edited_versions_of_their_videos(samples: SampleCollection) -> None:
    (mirror, mirrored), (faster, _) = samples.copies
    assert probe(faster).duration == pytest.approx(10.0 / 1.25, abs=0.2)
    source = read_frames(mirrored, rate=1).images.astype(int)
    copy = read_frames(mirror, rate=1).images.astype(int)
    assert np.abs(source[:, :, ::-1] - copy).mean() < 8
    assert np.abs(source - copy).mean() > 20


def test_the_query_shows_its_source_at_the_given_times(samples: SampleCollection) -> None:
    query = samples.query
    assert query.source.name == "astronaut.mp4"
    for share in (0.1, 0.5, 0.9):
        time, other = query.source_start + share * query.seconds, query.start + share * query.seconds
        one = read_frames(query.source, rate=1, start=time, end=time + 0.1).images[0].astype(int)
        two = read_frames(query.path, rate=1, start=other, end=other + 0.1).images[0].astype(int)
        assert np.abs(one - two).mean() < 12
    for moment in (query.start - 0.3, query.start + query.seconds + 0.3):
        beside = read_frames(query.path, rate=1, start=moment, end=moment + 0.1).images[0].astype(int)
        assert np.abs(beside - one).mean() > 25


def test_a_second_call_writes_only_missing_files(samples: SampleCollection) -> None:
    before = contents(samples.folder)
    seen: list[tuple[int, int, str]] = []
    again = build_samples(
        samples.folder,
        **SMALL,  # type: ignore[arg-type]
        on_progress=lambda done, total, path: seen.append((done, total, path.name)),
    )
    assert contents(samples.folder) == before
    assert again.built == 0
    assert (again.videos, again.copies, again.query) == (samples.videos, samples.copies, samples.query)
    assert seen[0] == (1, 5, "astronaut.mp4")
    assert seen[-1] == (5, 5, "clip.mp4")
    samples.copies[0][0].unlink()
    assert build_samples(samples.folder, **SMALL).built == 1  # type: ignore[arg-type]


def test_part_of_a_video_can_be_copied(samples: SampleCollection, tmp_path: Path) -> None:
    write_copy(samples.videos[0], tmp_path / "part.mp4", "grey", start=2.0, end=5.0)
    assert probe(tmp_path / "part.mp4").duration == pytest.approx(3.0, abs=0.01)
    shown = read_frames(tmp_path / "part.mp4", rate=1).images[0].astype(int)
    source = read_frames(samples.videos[0], rate=1, start=2.0, end=2.1).images[0].astype(int)
    assert np.ptp(shown, axis=-1).mean() < 3
    assert np.abs(shown.mean(axis=-1) - source @ [0.299, 0.587, 0.114]).mean() < 8


def test_copy_needs_its_video(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="a copy needs its video: add coffee to videos"):
        build_samples(tmp_path, videos=("astronaut",), copies=(("coffee", "crop"),))
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidArgumentError, match="is a file; choose a folder for the samples"):
        build_samples(tmp_path / "file")
