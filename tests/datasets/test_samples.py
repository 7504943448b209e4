"""The sample collection: real files, known answers, built once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vidkin.datasets import SampleCollection, build_samples
from vidkin.errors import InvalidArgumentError
from vidkin.media import probe, read_frames

SMALL = {
    "videos": ("astronaut", "coffee"),
    "copies": (("coffee", "mirror"), ("astronaut", "faster")),
    "seconds": 8.0,
    "rate": 10,
    "width": 128,
    "height": 96,
}


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> SampleCollection:
    return build_samples(tmp_path_factory.mktemp("samples"), **SMALL)


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_it_holds_videos_copies_and_a_query(samples: SampleCollection) -> None:
    assert [path.name for path in samples.videos] == ["astronaut.mp4", "coffee.mp4"]
    assert [copy.path.name for copy in samples.copies] == ["coffee-mirror.mp4", "astronaut-faster.mp4"]
    assert {path.parent for path in samples.videos} == {samples.videos_folder}
    assert {copy.path.parent for copy in samples.copies} == {samples.copies_folder}
    assert samples.built == 2 + 2 + 2  # and the filler and the query
    for path in samples.videos:
        info = probe(path)
        assert (info.width, info.height) == (128, 96)
        assert info.duration == pytest.approx(8.0, abs=0.01)


def test_the_truth_about_copies_is_right(samples: SampleCollection) -> None:
    mirror, faster = samples.copies
    assert (mirror.mirrored, faster.mirrored) == (True, False)
    assert probe(faster.path).duration == pytest.approx(8.0 / 1.25, abs=0.2)
    source = read_frames(mirror.source, rate=1).images.astype(int)
    copy = read_frames(mirror.path, rate=1).images.astype(int)
    assert np.abs(source[:, :, ::-1] - copy).mean() < 8
    assert np.abs(source - copy).mean() > 20


def test_the_query_shows_its_source_where_it_says(samples: SampleCollection) -> None:
    query = samples.query
    assert query.source.name == "astronaut.mp4"
    ((start, end, query_start, query_end),) = query.segments
    assert end - start == pytest.approx(5.0, abs=0.2)
    for share in (0.2, 0.5, 0.8):
        time = start + share * (end - start)
        other = query_start + share * (query_end - query_start)
        one = read_frames(query.source, rate=1, start=time, end=time + 0.1).images[0].astype(int)
        two = read_frames(query.path, rate=1, start=other, end=other + 0.1).images[0].astype(int)
        assert np.abs(one - two).mean() < 12
    if query_start > 1:
        before = read_frames(query.path, rate=1, start=0, end=0.1).images[0].astype(int)
        assert np.abs(before - one).mean() > 25


def test_a_second_call_writes_nothing(samples: SampleCollection) -> None:
    before = contents(samples.folder)
    seen: list[tuple[int, int, str]] = []
    again = build_samples(
        samples.folder, **SMALL, on_progress=lambda done, total, path: seen.append((done, total, path.name))
    )
    assert contents(samples.folder) == before
    assert again.built == 0
    assert (again.videos, again.copies, again.query) == (samples.videos, samples.copies, samples.query)
    assert seen[0] == (1, 6, "astronaut.mp4")
    assert seen[-1] == (6, 6, "clip.mp4")


def test_what_is_missing_or_damaged_is_built_again(samples: SampleCollection, tmp_path: Path) -> None:
    import shutil

    folder = Path(shutil.copytree(samples.folder, tmp_path / "copy"))
    (folder / "copies" / "coffee-mirror.mp4").unlink()
    (folder / "videos" / "coffee.mp4").write_bytes(b"cut short")
    assert build_samples(folder, **SMALL).built == 2
    (folder / "samples.json").write_text("{ not json")
    assert build_samples(folder, **SMALL).built == 6


def test_another_seed_is_another_collection(samples: SampleCollection, tmp_path: Path) -> None:
    other = build_samples(tmp_path, **{**SMALL, "copies": (), "seed": 1})
    one = read_frames(samples.videos[0], rate=1).images.astype(int)
    two = read_frames(other.videos[0], rate=1).images.astype(int)
    assert np.abs(one - two).mean() > 10


def test_a_copy_needs_its_video(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="a copy needs its video: add coffee to videos"):
        build_samples(tmp_path, videos=("astronaut",), copies=(("coffee", "crop"),))
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidArgumentError, match="is a file; choose a folder for the samples"):
        build_samples(tmp_path / "file")
