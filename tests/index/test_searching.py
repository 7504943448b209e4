"""Reading an index of real files: match, segments, decisions, recall, and refused arguments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import vidkin
from tests.support.videos import encode, pan
from vidkin.errors import CollectionError, InvalidArgumentError, MediaError, NotIndexedError
from vidkin.index import Index, SerialExecutor


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    root = tmp_path_factory.mktemp("searching")
    folder = root / "videos é"
    folder.mkdir()
    for name in ("coffee", "chelsea", "rocket"):
        encode(folder / f"{name}.mp4", pan(name, 100, width=160, height=120), rate=10)
    encode(folder / "coffee low.mp4", pan("coffee", 100, width=160, height=120), rate=10, options={"crf": "38"})
    with Index.open(root / "c.vidkin", create=True) as opened:
        opened.add(folder, executor=SerialExecutor(opened.worker_spec))
        yield opened


def path_of(index: Index, name: str) -> Path:
    return next(Path(record.path) for record in index.videos() if Path(record.path).stem == name)


@pytest.mark.thorough
def test_match_reads_the_target_at_the_rate_of_the_query(index: Index) -> None:
    comparison = index.match(path_of(index, "coffee low"), path_of(index, "coffee"))
    assert comparison.score > 0.7
    assert comparison.segments[0].query_end == pytest.approx(10, abs=0.3)
    assert tuple(comparison.map.shape) == (len(comparison.query_times), len(comparison.target_times))
    assert len(comparison.target_times) == len(comparison.query_times) == 20  # two per second
    assert "Comparison(score=" in repr(comparison)
    assert index.match(path_of(index, "rocket"), path_of(index, "coffee")).score < 0.2


def test_match_uses_stored_features_if_the_file_is_missing(tmp_path: Path) -> None:
    clip = encode(tmp_path / "clip.mp4", pan("coffee", 100, width=160, height=120), rate=10)
    gone = tmp_path / "gone.mp4"
    gone.write_bytes(clip.read_bytes())
    with Index.open(tmp_path / "i", create=True) as other:
        other.add(gone, executor=SerialExecutor(other.worker_spec))
        gone.unlink()
        comparison = other.match(clip, gone)
    assert len(comparison.target_times) == 10  # one per second, as indexed
    assert comparison.score > 0.7


@pytest.mark.thorough
def test_segments_end_where_the_videos_end(index: Index, tmp_path: Path) -> None:
    """A video of 3.1 s is sampled about every 0.4 s, so the period of its last sample extends beyond its end."""
    short = encode(tmp_path / "short.mp4", pan("chelsea", 31, width=160, height=120), rate=10)
    long = encode(tmp_path / "long.mp4", pan("chelsea", 93, width=160, height=120), rate=10)
    with Index.open(tmp_path / "c.vidkin", create=True) as other:
        other.add([short, long], executor=SerialExecutor(other.worker_spec))
        for match in other.search(short):
            for segment in match.segments:
                assert segment.query_end <= 3.1 + 1e-9
                assert segment.target_end <= (3.1 if match.path == str(short) else 9.3) + 1e-9
        matches = other.search(long, start=7, end=9.1)
        assert matches[0].path == str(long)
        assert matches[0].segments[0].query_end == pytest.approx(9.1, abs=0.3)
        assert max(segment.query_end for match in matches for segment in match.segments) <= 9.1
        # An end beyond the file is clamped, and does not change the sampling rate of the query.
        beyond = other.search(short, start=0, end=100)
        assert [m.segments for m in beyond] == [m.segments for m in other.search(short, start=0, end=3.1)]
    assert max(s.query_end for s in vidkin.compare(short, long).segments) <= 3.1 + 1e-9
    whole = index.search(path_of(index, "coffee"))[0].segments
    assert [(s.query_start, s.query_end, s.target_start, s.target_end) for s in whole] == [(0, 10, 0, 10)]


@pytest.mark.thorough
def test_compare_needs_no_index(index: Index) -> None:
    comparison = vidkin.compare(path_of(index, "coffee low"), path_of(index, "coffee"))
    assert comparison.score > 0.7
    assert vidkin.compare(path_of(index, "rocket"), path_of(index, "coffee")).score < 0.2


def test_invalid_query_is_refused_with_the_cause(index: Index, tmp_path: Path) -> None:
    coffee = path_of(index, "coffee")
    with pytest.raises(NotIndexedError, match="is not in the index"):
        index.match(coffee, tmp_path / "other.mp4")
    with pytest.raises(MediaError, match="there is no such file"):
        index.search(tmp_path / "none.mp4")
    with pytest.raises(InvalidArgumentError, match=r"end must be after start \(5 s\), got 4 s"):
        index.search(coffee, start=5, end=4)
    with pytest.raises(MediaError, match="is beyond the end"):
        index.search(coffee, start=50)
    with pytest.raises(InvalidArgumentError, match="limit and candidates must be at least 1, got 0 and 100"):
        index.search(coffee, limit=0)
    with pytest.raises(CollectionError, match="is a folder with 4 videos; specify a single file"):
        index.confirm(coffee.parent, coffee)


def test_decisions_change_duplicates(index: Index) -> None:
    low, high = path_of(index, "coffee low"), path_of(index, "coffee")
    (group,) = index.duplicates()
    assert {Path(member.path) for member in group.members} == {low, high}
    index.reject(low, high)
    assert index.duplicates() == []
    index.confirm(high, low)
    assert len(index.duplicates()) == 1


def test_recall_is_one_in_a_small_index(index: Index) -> None:
    report = index.recall(queries=4)
    assert (report.queries, report.recall) == (4, 1.0)
    assert report.relevant == report.found == 2


def test_read_only_index_accepts_no_decisions(index: Index) -> None:
    with (
        Index.open(index.path, read_only=True) as reader,
        pytest.raises(CollectionError, match="was opened read-only"),
    ):
        reader.reject(path_of(index, "coffee"), path_of(index, "rocket"))


def test_add_needs_at_least_one_worker(tmp_path: Path) -> None:
    with (
        Index.open(tmp_path / "c", create=True) as index,
        pytest.raises(InvalidArgumentError, match="workers must be at least 1, got 0"),
    ):
        index.add([], workers=0)


def test_no_decision_is_stored_without_a_content_hash(tmp_path: Path) -> None:
    """A file that changed while it was being read has no hash by which to store a decision."""
    paths = [encode(tmp_path / f"{name}.mp4", pan(name, 20)) for name in ("coffee", "rocket")]
    with Index.open(tmp_path / "c", create=True) as index:
        index.add(paths, executor=SerialExecutor(index.worker_spec))
        first = index.videos()[0]
        index.store.update([replace(first, content_hash="").as_stale("it changed while it was being read")])
        with pytest.raises(NotIndexedError, match="changed while it was being read; index it again"):
            index.reject(*paths)
        assert not (tmp_path / "c" / "decisions.json").exists()


@pytest.mark.thorough
def test_search_many_excludes_each_query_by_default(index: Index, tmp_path: Path) -> None:
    names = ("coffee", "chelsea", "coffee low")
    queries = [path_of(index, name) for name in names]
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"no video")
    steps: list[tuple[int, int]] = []
    coffee, failed, chelsea, low = index.search_many(
        [queries[0], broken, *queries[1:]], limit=1, threshold=0.5, on_progress=lambda *step: steps.append(step)
    )
    assert isinstance(failed, MediaError)
    assert failed.path == str(broken)
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]
    for found, expected in ((coffee, ["coffee low"]), (chelsea, []), (low, ["coffee"])):
        assert isinstance(found, vidkin.Results)
        assert [Path(match.path).stem for match in found] == expected
    (whole,) = index.search_many(queries[:1], limit=2, threshold=0.5, own=True)
    assert whole == index.search(queries[0], limit=2, threshold=0.5)
    assert index.search(queries[0], limit=1, own=False) == index.search(queries[0], limit=2)[1:]
    assert index.search(queries[0], limit=1, offset=1, own=False) == index.search(queries[0], limit=3)[2:]
    # A copy under another path is not excluded.
    copy = tmp_path / "copy.mp4"
    copy.write_bytes(queries[0].read_bytes())
    assert index.search(copy, limit=1, own=False)[0].path == str(queries[0])
