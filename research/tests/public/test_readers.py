"""Annotation files in the published formats."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidkin.errors import InvalidArgumentError
from vidkin_research.public.names import available_benchmarks, open_benchmark


def write(folder: Path, **files: object) -> Path:
    """Write files by name, with __ for a dot; content that is not text is written as JSON."""
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        path = folder / name.replace("__", ".")
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return folder


def test_fivr_adds_labels_task_by_task_and_omits_the_query(tmp_path: Path) -> None:
    labels = {
        "q1": {"ND": ["a", "q1"], "DS": ["b"], "CS": ["c"], "IS": ["d"], "DA": ["x"]},
        "q2": {"DS": ["c"]},
    }
    folder = write(tmp_path / "fivr", annotation__json=labels)
    (folder / "fivr-5k-queries.txt").write_text("q1 Videos/q1.mp4\n")
    (folder / "fivr-5k-database.txt").write_text("b v/b.mp4\na v/a.mp4\n\n")
    (folder / "youtube_ids.txt").write_text("a\nb\nc\nq1\n")
    small = open_benchmark("fivr-5k", tmp_path)
    assert (small.queries, small.database) == (("q1",), ("a", "b"))
    assert [(task.name, task.detection) for task in small.tasks] == [
        ("DSVR", "DSVD"), ("CSVR", "CSVD"), ("ISVR", "ISVD"),
    ]  # fmt: skip
    assert [sorted(task.positives["q1"]) for task in small.tasks] == [
        ["a", "b"], ["a", "b", "c"], ["a", "b", "c", "d"],
    ]  # fmt: skip
    large = open_benchmark("fivr-200k", folder)
    assert (large.queries, large.database) == (("q1", "q2"), ("a", "b", "c", "q1"))
    assert large.videos == ("a", "b", "c", "q1", "q2")


def test_evve_is_grouped_by_event(tmp_path: Path) -> None:
    document = {
        "annotation": {"riot": [["q1"], ["a", "b"], ["n"]], "flood": [["q2"], ["c"], []]},
        "queries": ["q2", "q1"],
        "database": ["c", "b", "a", "n"],
    }
    benchmark = open_benchmark("evve", write(tmp_path, evve__json=document))
    assert benchmark.groups == {"q1": "riot", "q2": "flood"}
    assert benchmark.has_trapezoids
    assert benchmark.tasks[0].positives == {"q1": {"a", "b"}, "q2": {"c"}}


def test_svd_ranks_labeled_and_unlabeled_videos(tmp_path: Path) -> None:
    folder = write(tmp_path, test_groundtruth="1.mp4 2.mp4 1\n1.mp4 3.mp4 0\n4.mp4 5.mp4 1\n")
    task = open_benchmark("svd", folder).tasks[0]
    assert task.positives == {"1": {"2"}, "4": {"5"}}
    assert task.candidates == {"1": {"2", "3"}, "4": {"5"}}
    (folder / "unlabeled-data-id").write_text("9.mp4\n")
    larger = open_benchmark("svd", folder)
    assert larger.tasks[0].candidates == {"1": {"2", "3", "9"}, "4": {"5", "9"}}
    assert larger.database == ("2", "3", "5", "9")


def test_cc_web_video_has_a_list_per_query_and_a_list_of_all_videos(tmp_path: Path) -> None:
    names = "".join(
        f"{number}\t{query}\tYouTube\t{name}\turl\n"
        for number, query, name in (
            (1, 1, "1_1_Y.flv"),
            (2, 1, "1_2_G.avi"),
            (3, 1, "1_3_H.flv"),
            (4, 2, "2_1_Y.flv"),
        )
    )
    folder = write(tmp_path, Video_List__txt=names, Seed__txt="1\t1\n2\t4\n")
    write(folder / "GT", GT_1__rst="1\tE\n2\tS\n3\tX\n", GT_2__rst="4\tE\n3\t-1\n")
    benchmark = open_benchmark("cc_web_video", folder)
    near, everything = benchmark.tasks
    assert benchmark.queries == ("1_1_Y", "2_1_Y")
    assert near.positives == {"1_1_Y": {"1_2_G"}, "2_1_Y": set()}
    assert near.candidates == {"1_1_Y": {"1_1_Y", "1_2_G", "1_3_H"}, "2_1_Y": {"2_1_Y"}}
    assert everything.candidates is None


def test_vcdb_and_vcsl_have_boxes(tmp_path: Path) -> None:
    boxes = {"a-a": [[0, 0, 9, 9]], "a-b": [[1, 2, 3, 4], [5, 5, 5, 6]], "b-c": [[0, 0, 1, 1]]}
    folder = write(tmp_path, label_file__json=boxes)
    core = open_benchmark("vcdb", folder)
    assert core.tasks[0].positives == {"a": {"b"}, "b": {"a", "c"}, "c": {"b"}}
    assert core.segments == {("a", "b"): ((1, 2, 3, 4),), ("b", "c"): ((0, 0, 1, 1),)}
    pairs = open_benchmark("vcsl", folder)
    assert (pairs.queries, pairs.database, pairs.tasks) == (("a", "b"), ("b", "c"), ())


def test_vsc2022_includes_videos_without_copies(tmp_path: Path) -> None:
    truth = "query_id,ref_id,query_start,query_end,ref_start,ref_end\nQ1,R1,0.0,4.5,2.0,6.5\n"
    folder = write(tmp_path, train_matching_ground_truth__csv=truth)
    assert open_benchmark("vsc2022", folder).queries == ("Q1",)
    write(folder, train_query_metadata__csv="video_id,duration_sec\nQ1,9\nQ2,9\n")
    benchmark = open_benchmark("vsc2022", folder)
    assert (benchmark.queries, benchmark.database) == (("Q1", "Q2"), ("R1",))
    assert benchmark.segments == {("Q1", "R1"): ((0.0, 2.0, 4.5, 6.5),)}
    assert benchmark.tasks[0].positives == {"Q1": {"R1"}, "Q2": set()}


@pytest.mark.parametrize(
    ("name", "files", "message"),
    [
        ("fivr-5k", {}, "missing annotation.json; download it from https://github.com/MKLab-ITI/FIVR-200K"),
        ("fivr-5", {}, "dataset must be one of cc_web_video, evve, fivr-200k"),
        ("svd", {"test_groundtruth": "1.mp4 2.mp4\n"}, "line 1: must have 3 fields, got 2"),
        ("svd", {"test_groundtruth": "1.mp4 2.mp4 yes\n"}, "labels must be 0 or 1, got 'yes' for 1.mp4"),
        ("evve", {"evve__json": {"annotation": {}}}, "must contain annotation, queries and database"),
        ("evve", {"evve__json": "{"}, "cannot be read as annotations"),
        ("vcdb", {"label_file__json": {"a": [[0, 0, 1, 1]]}}, "must contain query-reference"),
        (
            "vsc2022",
            {"matching_ground_truth__csv": "query_id,ref_id\n"},
            "missing query_end, query_start, ref_end",
        ),
        ("vcsl", {"label_file__json": {}}, "must have queries and a database, got 0 queries and 0 videos"),
        ("vcdb", {"label_file__json": {"a-b": 3}}, r"label_file\.json: must contain query-reference"),
        ("vcdb", {"label_file__json": {"a-b": [["x", 0, 1, 1]]}}, "must contain query-reference"),
        ("vcdb", {"label_file__json": {"a-b": [[0, 0, 1, None]]}}, "must contain query-reference"),
        ("vcdb", {"label_file__json": [1]}, "must contain an object, got list"),
        (
            "fivr-200k",
            {"annotation__json": {"q": ["v"]}, "youtube_ids__txt": "v\n"},
            r"annotation\.json must contain",
        ),
        ("fivr-200k", {"annotation__json": {"q": {"ND": None}}, "youtube_ids__txt": "v\n"}, "for query q"),
        (
            "fivr-5k",
            {
                "annotation__json": {"q": {}},
                "fivr-5k-queries__txt": "q\nr\n",
                "fivr-5k-database__txt": "v\n",
            },
            "has no labels for query r",
        ),
        (
            "evve",
            {"evve__json": {"annotation": {}, "queries": [["a"]], "database": ["b"]}},
            "must contain annotation",
        ),
        (
            "vsc2022",
            {"matching_ground_truth__csv": "query_id,ref_id,query_start,query_end,ref_start,ref_end\nQ1,R1,0\n"},
            "line 2: times must be numbers",
        ),
        (
            "vsc2022",
            {"matching_ground_truth__csv": "query_id,ref_id,query_start,query_end,ref_start,ref_end\nQ,R,0,1,x,2\n"},
            "line 2: times must be numbers",
        ),
        (
            "cc_web_video",
            {"Video_List__txt": "1\t1\tYouTube\t1_1_Y.flv\n", "Seed__txt": "1 7\n", "GT_1__rst": "1 E\n"},
            "query 1 refers to video '7', which is not in Video_List.txt",
        ),
    ],
)
def test_invalid_content_is_rejected_with_the_cause(
    tmp_path: Path, name: str, files: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        open_benchmark(name, write(tmp_path, **files))


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from(["a", "a-b", "ND", ""]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["a", "a-b", "ND", "annotation", "queries", "database"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(_VALUES)
def test_any_annotations_give_a_benchmark_or_a_vidkin_error(content: object) -> None:
    readers = {"evve": "evve", "vcdb": "label_file", "fivr-200k": "annotation"}
    for name, file in readers.items():
        with TemporaryDirectory() as folder:
            place = write(Path(folder), **{f"{file}__json": json.dumps(content), "youtube_ids__txt": "v\n"})
            with contextlib.suppress(InvalidArgumentError):
                assert open_benchmark(name, place).queries


def test_all_benchmarks_have_a_reader() -> None:
    assert len(available_benchmarks()) == 8
