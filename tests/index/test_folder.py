"""An index and its folders: missing, excluded and removed files, and stored rules."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from tests.index.helpers import video
from tests.support.videos import photograph
from vidkin.errors import CollectionDamagedError, CollectionMismatchError, InvalidArgumentError
from vidkin.index import Index, IngestReport, SerialExecutor, WorkerSpec

HERE = SerialExecutor(WorkerSpec("classical"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three videos and an index of them; tests copy both."""
    root = tmp_path_factory.mktemp("made")
    for seed, name in enumerate(["a.mp4", "b.mp4", "sub/c.mp4"]):
        video(root / "videos" / name, seed=seed, frames=5)
    with Index.open(root / "c.vidkin", extractor="classical", create=True) as index:
        index.add(root / "videos", executor=HERE)
    return root


@pytest.fixture
def videos(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made / "videos", tmp_path / "videos")


@pytest.fixture
def index(made: Path, videos: Path) -> Iterator[Index]:
    """An index in which the copied videos are recognized."""
    with Index.open(shutil.copytree(made / "c.vidkin", videos.parent / "c.vidkin")) as opened:
        opened.add(videos, executor=HERE)
        opened.remove(made / "videos")
        yield opened


def paths(index: Index) -> list[str]:
    return [os.path.basename(record.path) for record in index]


def add(index: Index, *names: Path, **options: object) -> IngestReport:
    return index.add(names, executor=HERE, **options)  # type: ignore[arg-type]


def test_missing_files_are_reported_and_marked_until_pruned(index: Index, videos: Path) -> None:
    query = shutil.copy(videos / "a.mp4", videos.parent / "query.mp4")
    (videos / "a.mp4").unlink()
    assert [match.missing for match in index.search(query, threshold=0.9)] == [True]
    report = add(index, videos)
    assert str(report) == "0 added, 2 unchanged, 0 moved, 0 broken, 0 removed, 1 missing"
    assert [item.path for item in report.missing] == [str(videos / "a.mp4")]
    assert (index.info().videos, index.info().missing) == (3, 1)
    assert add(index, videos / "sub").missing == ()  # files in other folders are not reported
    report = add(index, videos, prune=True)
    assert (len(report.removed), report.missing) == (1, ())
    assert index.info().missing == 0


def test_removed_files_stay_removed_until_they_are_named(index: Index, videos: Path) -> None:
    assert index.remove([videos / "a.mp4", videos / "sub"]) == 2
    report = add(index, videos)
    assert (report.added, paths(index)) == ((), ["b.mp4"])
    assert dict.fromkeys(item.path for item in report.skipped) == dict.fromkeys(
        [str(videos / "a.mp4"), str(videos / "sub/c.mp4")]
    )
    assert all("removed from the index" in item.cause for item in report.skipped)
    video(videos / "sub/new.mp4", seed=4, frames=5)  # in a removed folder
    add(index, videos)
    assert paths(index) == ["b.mp4"]
    add(index, videos / "a.mp4")
    assert paths(index) == ["a.mp4", "b.mp4"]
    add(index, videos / "sub")
    add(index, videos)
    assert paths(index) == ["a.mp4", "b.mp4", "c.mp4", "new.mp4"]


def test_part_of_a_removed_folder_can_be_added_again(index: Index, videos: Path) -> None:
    index.remove(videos)
    add(index, videos / "sub")
    assert paths(index) == ["c.mp4"]
    video(videos / "sub/c.mp4", seed=5, frames=5)  # its record is updated
    assert [item.kind for item in add(index, videos.parent).added] == ["changed"]
    assert paths(index) == ["c.mp4"]
    add(index, videos)
    assert paths(index) == ["a.mp4", "b.mp4", "c.mp4"]


def test_error_for_a_damaged_list_of_removed_files_states_the_remedy(index: Index, videos: Path) -> None:
    (index.path / "removed.json").write_text('{"removed": 3}')
    with pytest.raises(CollectionDamagedError, match=r"removed\.json is damaged .*delete it"):
        add(index, videos)


def test_rules_are_stored_in_the_index(index: Index, videos: Path) -> None:
    Image.fromarray(photograph("coffee")).save(videos / "photo.jpg")
    video(videos / "a proxy.mp4", seed=4, frames=5)
    (videos.parent / "other").mkdir()
    video(videos.parent / "other" / "linked.mp4", seed=5, frames=5)
    (videos / "link").symlink_to(videos.parent / "other")
    add(index, videos, exclude=["*proxy*"], images=True, follow_links=True)
    assert paths(index) == ["a.mp4", "b.mp4", "linked.mp4", "photo.jpg", "c.mp4"]
    with Index.open(index.path) as again:
        assert (again.manifest.exclude, again.manifest.images) == (("*proxy*",), True)
        assert len(add(again, videos).unchanged) == 5
        report = add(again, videos, exclude=[], follow_links=False, images=False)
    assert [os.path.basename(item.path) for item in report.added] == ["a proxy.mp4"]
    assert len(report.unchanged) == 3
    manifest = json.loads((index.path / "collection.json").read_text())
    assert (manifest["exclude"], manifest["follow_links"], manifest["images"]) == ([], False, False)


def test_prune_removes_files_that_are_now_excluded(index: Index, videos: Path) -> None:
    assert add(index, videos, exclude="sub").removed == ()
    assert len(index) == 3
    report = add(index, videos, prune=True)
    assert [item.path for item in report.removed] == [str(videos / "sub/c.mp4")]
    assert [item.path for item in add(index, videos / "sub").added] == [str(videos / "sub/c.mp4")]


def test_sampling_rate_of_an_index_is_fixed(tmp_path: Path, videos: Path) -> None:
    with Index.open(tmp_path / "dense", rate=5, create=True) as index:
        index.add(videos / "a.mp4", executor=SerialExecutor(index.worker_spec))
        assert index.videos()[0].frames == 5
    assert Index.open(tmp_path / "dense", rate=5.0).manifest.sampling_rate == 5
    with pytest.raises(CollectionMismatchError, match=r"the rate of the index is 5 .*got 2"):
        Index.open(tmp_path / "dense", rate=2)
    with pytest.raises(InvalidArgumentError, match="rate must be a number or None, got nan"):
        Index.open(tmp_path / "dense", rate=float("nan"))
    for rate in (0, -1, 31):
        with pytest.raises(InvalidArgumentError, match="rate must be above 0 and at most 30"):
            Index.open(tmp_path / "new", rate=rate, create=True)
    assert not (tmp_path / "new").exists()


def test_index_is_a_collection_of_records(index: Index, videos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(index) == 3
    assert [record.path for record in index] == [str(videos / name) for name in ("a.mp4", "b.mp4", "sub/c.mp4")]
    assert str(videos / "a.mp4") in index
    assert videos / "sub" not in index
    assert 3 not in index
    monkeypatch.chdir(videos)
    assert "sub/c.mp4" in index


def test_results_are_converted_to_plain_values(index: Index, videos: Path) -> None:
    results = [
        index.search(videos / "a.mp4")[0],
        index.match(videos / "a.mp4", videos / "a.mp4"),
        index.info(),
        index.videos()[0],
        add(index, videos),
    ]
    match, comparison, info, record, report = (json.loads(json.dumps(item.to_dict())) for item in results)
    assert (match["path"], match["score"], match["missing"]) == (str(videos / "a.mp4"), 1.0, False)
    assert match["segments"][0]["target_start"] == 0.0
    assert len(comparison["map"]) == len(comparison["query_times"])
    assert info["videos"] == 3
    assert record["codec"] == "h264"
    assert len(report["unchanged"]) == 3
