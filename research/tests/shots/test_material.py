"""Training and evaluation data of shot detectors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.support.videos import encode, pan
from vidkin.errors import InvalidArgumentError
from vidkin.media import write_video
from vidkin_research.learned.judging import BoundaryLabels
from vidkin_research.shots.material import LabelledVideo, annotation_of, composed_part, edited_videos, with_whole_fades


def test_shots_lie_between_cuts_and_transitions() -> None:
    video = LabelledVideo(Path("a.mp4"), BoundaryLabels((10, 40), ((0, 3), (20, 29))))
    annotation = annotation_of(video, 50)
    assert [(shot.start, shot.end) for shot in annotation.shots] == [(4, 10), (10, 20), (30, 40), (40, 50)]


@pytest.mark.parametrize(("plain", "labels"), [(0, 1), (6, 1), (24, 1), (40, 2)])
def test_fade_out_and_fade_in_are_one_label_if_black_lasts_at_most_a_second(
    tmp_path: Path, plain: int, labels: int
) -> None:
    """10 frames of an image, 8 fading to black, some black ones, 8 fading in, 10 of the image; 25 fps."""
    picture = np.kron(np.random.default_rng(0).integers(40, 220, (6, 10)), np.ones((12, 12)))[..., None].repeat(3, 2)
    down = [picture * share for share in np.linspace(0.9, 0, 8)]
    frames = [*[picture] * 10, *down, *[picture * 0] * plain, *down[::-1], *[picture] * 10]
    write_video(tmp_path / "film.mp4", (frame.astype(np.uint8) for frame in frames), rate=25)
    fades = ((10, 17), (18 + plain, 25 + plain))
    whole = with_whole_fades(LabelledVideo(tmp_path / "film.mp4", BoundaryLabels((), fades)))
    assert whole.labels.gradual == (((10, 25 + plain),) if labels == 1 else fades)
    assert {one.kind for one in whole.transitions} == {"fade" if labels == 1 else "gradual"}


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        ({"videos": {"gone.mp4": {"hard": [3]}}}, "labeled videos are missing: gone.mp4"),
        ({"videos": {}}, "no labels"),
    ],
)
def test_labels_require_videos(tmp_path: Path, truth: object, message: str) -> None:
    (tmp_path / "truth.json").write_text(json.dumps(truth), encoding="utf-8")
    with pytest.raises(InvalidArgumentError, match=message):
        edited_videos(tmp_path)


def test_kinds_are_parsed_from_words_and_titles_are_gradual(edited: Path, tmp_path: Path) -> None:
    words = ("fade-in", "title fade-out", "through-white", "dissolve", "fade to black under logo", "")
    parts = [{"start": 10 * place, "end": 10 * place + 5, "kind": kind} for place, kind in enumerate(words)]
    (tmp_path / "two.mp4").write_bytes((edited / "two.mp4").read_bytes())
    label = {"hard": [3], "gradual": [*parts, {"start": 90, "end": 95}]}
    (tmp_path / "truth.json").write_text(json.dumps({"videos": {"two.mp4": label}}), encoding="utf-8")
    (video,) = edited_videos(tmp_path)
    assert [(one.kind, one.start) for one in video.transitions] == [
        *(("fade", 0), ("hard", 3), ("gradual", 10), ("fade", 20), ("dissolve", 30), ("fade", 40)),
        *(("gradual", 50), ("gradual", 90)),
    ]


def test_clips_of_the_two_splits_differ(clips: Path, tmp_path: Path) -> None:
    def compose(test: bool, folder: Path, source: Path = clips) -> list[LabelledVideo]:
        return composed_part(
            source,
            None,
            folder,
            test=test,
            videos=1,
            frames=60,
            size=(36, 64),
            on_progress=lambda done, total, what: None,
        )

    (train,) = compose(False, tmp_path / "train")
    (test,) = compose(True, tmp_path / "test")
    assert train.path.read_bytes() != test.path.read_bytes()
    written = test.path.stat().st_mtime_ns
    assert compose(True, tmp_path / "test") == [test]
    assert test.path.stat().st_mtime_ns == written
    (tmp_path / "none").mkdir()
    with pytest.raises(InvalidArgumentError, match="no single-shot clips for the test split"):
        compose(True, tmp_path / "other", tmp_path / "none")


def test_truth_json_has_the_documented_format(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    example = page.partition("```json\n")[2].partition("```")[0]
    (tmp_path / "truth.json").write_text(example, encoding="utf-8")
    encode(tmp_path / "film.mp4", pan("coffee", 3))
    (video,) = edited_videos(tmp_path)
    assert video.labels.hard == (120, 310)
    assert video.labels.gradual == ((200, 224),)
    assert video.kinds == ("dissolve",)
