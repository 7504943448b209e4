"""Labels of public collections, in their published formats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vidkin.errors import DatasetError, InvalidArgumentError
from vidkin_research.shots.extents import LabeledTransition
from vidkin_research.shots.labels import labels_of_video, read_shot_labels

HARD, GRADUAL = LabeledTransition("hard", 31, 31), LabeledTransition("gradual", 61, 70)


def write(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_clipshots_names_the_frames_around_each_transition(tmp_path: Path) -> None:
    file = write(tmp_path / "test.json", {"a.mp4": {"transitions": [[30, 31], [60, 71]], "frame_num": 100.0}})
    assert read_shot_labels("clipshots", file) == {"a": (HARD, GRADUAL)}


def test_rai_and_bbc_labels_are_first_and_last_frames_of_shots(tmp_path: Path) -> None:
    write(tmp_path / "7_gt.txt", "0 30\n31\t60\n71 99\n\n")
    assert read_shot_labels("rai", tmp_path) == {"7": (HARD, GRADUAL)}
    file = write(tmp_path / "01_From_Pole_to_Pole.txt", "0 29\n30 59\n70 98\n")
    assert read_shot_labels("bbc", file) == {"01_From_Pole_to_Pole": (HARD, GRADUAL)}


def test_labels_of_shot_are_grouped_by_video(tmp_path: Path) -> None:
    file = write(tmp_path / "truth.json", {"123": [[0, 30], [31, 60], [71, 99]]})
    assert read_shot_labels("shot", file) == {"123": (HARD, GRADUAL)}


def test_bbc_videos_are_matched_by_the_number_in_their_names(tmp_path: Path) -> None:
    """The videos are bbc_01.mp4 ..., their labels 01_From_Pole_to_Pole.txt ..."""
    for name in ("01_From_Pole_to_Pole.txt", "10_Seasonal_Forests.txt"):
        write(tmp_path / name, "0 29\n30 59\n")
    labels = read_shot_labels("bbc", tmp_path)
    assert labels_of_video("bbc", labels, "bbc_10") == labels["10_Seasonal_Forests"] == (HARD,)
    assert labels_of_video("bbc", labels, "bbc_02") is None
    assert labels_of_video("rai", labels, "bbc_10") is None


def test_format_errors_in_the_published_labels_of_shot_are_tolerated(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Stray commas, a dot and blank lines are accepted, but not a transition that ends before it starts."""
    text = "31602670982.mp4 99\n30,31\n60,71\n\n\n39672724739.mp4  574\n30,,31\n60.71\n722,57\n\n5.mp4 9\n30,31,\n \n"
    file = write(tmp_path / "kuaishou_v2.txt", text)
    expected = {"31602670982": (HARD, GRADUAL), "39672724739": (HARD, GRADUAL), "5": (HARD,)}
    assert read_shot_labels("shot", file) == expected
    assert "line 9 skipped, because the transition ends before it starts: 722,57" in caplog.text
    with pytest.raises(DatasetError, match="line 1 must have two frames and follow a video name"):
        read_shot_labels("shot", write(tmp_path / "other.txt", "30,31\n"))


def test_evaluation_ranges_of_omnishotcut_exclude_their_end(tmp_path: Path) -> None:
    """Kinds are mapped as in the published tables: a dip to black is a fade, cross blur a dissolve."""
    entry = {
        "video_path": "videos/a.mp4",
        "ranges": [[0, 31], [31, 61], [61, 71], [71, 81], [81, 91], [91, 96], [96, 100], [100, 104]],
        "intra_labels": [
            "General",
            "General",
            "cross_blur",
            "General",
            "dip_to_black",
            "General",
            "General",
            "padding",
        ],
        "inter_labels": ["New_Start", "Hard_Cut", *["Transition"] * 4, "Sudden_Jump", "padding"],
    }
    expected = (
        HARD,
        LabeledTransition("dissolve", 61, 70),
        LabeledTransition("fade", 81, 90),
        LabeledTransition("jump", 96, 96),
    )
    assert read_shot_labels("omnishotcut", write(tmp_path / "a.json", [entry])) == {"a": expected}
    numbers = {
        "video_path": "a.mp4",
        "gt_ranges": entry["ranges"],
        "gt_intra_labels": [0, 0, 1, 0, 6, 0, 0, 8],
        "gt_inter_labels": [0, 1, 3, 3, 3, 3, 4, 5],
    }
    assert read_shot_labels("omnishotcut", write(tmp_path / "b.json", [numbers])) == {"a": expected}


def test_omnishotcut_has_label_ranges_and_transitions_into_them(tmp_path: Path) -> None:
    """A shot; another after a cut; a dissolve; a shot after a jump; a slide; a shot."""
    ranges = [[0, 30], [31, 60], [61, 70], [71, 80], [81, 90], [91, 95], [96, 99]]
    intra = ["General", "General", "Dissolve", "General", "General", "Slide_Left", "General"]
    inter = ["New_Start", "Hard_Cut", "Transition", "Transition", "Sudden_Jump", "Transition", "Transition"]
    expected = (
        HARD,
        LabeledTransition("dissolve", 61, 70),
        LabeledTransition("jump", 81, 81),
        LabeledTransition("wipe", 91, 95),
    )
    whole = {"a.mp4": {"shots": ranges, "intra_labels": intra, "inter_labels": inter}}
    assert read_shot_labels("omnishotcut", write(tmp_path / "a.json", whole)) == {"a": expected}
    shots = [
        {"start_frame": first, "end_frame_exclusive": last + 1, "intra_label": one, "inter_label": other}
        for (first, last), one, other in zip(ranges, intra, inter, strict=True)
    ]
    listed = [{"video_name": "a.mp4", "shots": shots}]
    assert read_shot_labels("omnishotcut", write(tmp_path / "b.json", listed)) == {"a": expected}
    # Without transition ranges, frames between two shots are gradual.
    gap = [{"video_name": "a.mp4", "shots": [shots[0], {**shots[3], "start_frame": 41}]}]
    assert read_shot_labels("omnishotcut", write(tmp_path / "c.json", gap)) == {
        "a": (LabeledTransition("gradual", 31, 40),)
    }


@pytest.mark.parametrize("content", ["[", {"a": [[0, 30], [20, 50]]}, {"a": [[0, 1.5], [2, 3]]}, {"a": 3}])
def test_error_for_labels_in_another_format_names_the_file(content: object, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"truth\.json: not a label file of SHOT"):
        read_shot_labels("shot", write(tmp_path / "truth.json", content))
    with pytest.raises(InvalidArgumentError, match="labels must be one of clipshots, bbc, rai, shot, omnishotcut"):
        read_shot_labels("other", tmp_path)
