"""The cut threshold is trained on verdicts, on films with known cuts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.videos import encode, pan
from vidkin.errors import CollectionDamagedError, CollectionError, InvalidArgumentError
from vidkin.index import Index, SerialExecutor, open_place
from vidkin.review import (
    REVIEW_FOLDER,
    CorrectedShots,
    CutLabel,
    Labels,
    forget_corrected,
    read_corrected,
    read_detector,
    read_reviews,
    train_cuts,
    train_measure,
    use_detector,
    write_corrected,
)
from vidkin.review.cuts import _MIN_PROBABILITY, _f1, _fit, _judge, _probability_near
from vidkin.shots import DetectedCut


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """An index of one film with three shots and cuts at frames 20 and 40."""
    frames = [*list(pan("coffee", 20)), *list(pan("rocket", 20)), *list(pan("astronaut", 20))]
    encode(tmp_path / "film.mp4", frames)
    with Index.open(tmp_path / "i.vidkin", extractor="classical", create=True) as index:
        index.add(tmp_path / "film.mp4", executor=SerialExecutor(index.worker_spec))
    return tmp_path / "i.vidkin"


def test_trained_threshold_is_measured_and_used(path: Path) -> None:
    with Index.open(path, read_only=True) as index:
        (record,) = index.videos()
        verdicts = [(frame, "cut") for frame in (18, 19, 20, 21, 22, 38, 39, 40, 41, 42)]
        verdicts += [(frame, "no cut") for frame in (5, 6, 8, 10, 12, 28, 30, 32, 50, 52)]
        Labels.judge_cuts(open_place(path), record.content_hash, verdicts, source="test")  # type: ignore[arg-type]
        review = train_cuts(index)
    assert review.trained_on + review.held_back == 20
    assert (review.before, review.after, review.judgment) == (1.0, 1.0, "no clear difference")
    assert read_reviews(path) == [{"kind": "cuts", **review.to_dict()}]
    assert read_detector(path) == "default"
    assert use_detector(open_place(path), use=True) == review.detector == read_detector(path)
    assert review.detector.startswith("default?hard=")
    assert use_detector(open_place(path), use=False) == read_detector(path) == "default"


@pytest.mark.parametrize("name", ["", "runs.jsonl", "cuts.json"])
def test_symbolic_links_in_the_review_folder_are_refused(path: Path, name: str, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    if name:
        (path / REVIEW_FOLDER).mkdir()
    (path / REVIEW_FOLDER / name).symlink_to(tmp_path / "elsewhere")
    with Index.open(path, read_only=True) as index:
        for write in (
            lambda: train_cuts(index),
            lambda: train_measure(index),
            lambda: use_detector(open_place(path), use=True),
        ):
            with pytest.raises(CollectionError, match="is a symbolic link, which an index must not contain"):
                write()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_training_needs_both_kinds_of_verdicts(path: Path) -> None:
    with Index.open(path, read_only=True) as index:
        (record,) = index.videos()
        Labels.judge_cuts(
            open_place(path), record.content_hash, [(frame, "cut") for frame in range(1, 12)], source="test"
        )
        with pytest.raises(InvalidArgumentError, match=r"both `cut` and `no cut`.*judge more cuts"):
            train_cuts(index)
    with pytest.raises(InvalidArgumentError, match="no threshold has been trained"):
        use_detector(open_place(path), use=True)


def test_threshold_separates_the_answers() -> None:
    examples = [(0.9, True), (0.8, True), (0.7, True), (0.4, False), (0.2, False), (0.1, False)]
    assert 0.4 < _fit(examples) < 0.7
    assert _fit([(0.1, True), (0.9, False), (0.2, True), (0.8, False)]) == 0.5


def test_f1_and_judgment_match_hand_computed_values() -> None:
    # Two of three guesses are right, and two of four cuts are found: precision 2/3, recall 1/2.
    rows = [(True, True), (True, True), (True, False), (False, True), (False, True)]
    assert _f1(rows) == pytest.approx(2 * (2 / 3) * 0.5 / (2 / 3 + 0.5))
    gained, same = (False, True, True), (True, True, True)
    assert _judge([gained] * 4 + [same] * 9) == "better"  # (1/2)^4 < 0.1
    assert _judge([gained] * 3 + [same] * 9) == "no clear difference"
    assert _judge([(True, False, True)] * 4) == "worse"


def test_moved_cut_has_one_verdict_until_moved_again_or_removed(tmp_path: Path) -> None:
    detected = (DetectedCut(10), DetectedCut(30))

    def save(*cuts: int, moved: tuple[tuple[int, int], ...] = ()) -> list[tuple[int, str, int | None]]:
        corrected = CorrectedShots(tuple(map(DetectedCut, cuts)), moved=moved)
        write_corrected(open_place(tmp_path), "aa", corrected, detected=detected, source="shots page")
        assert read_corrected(tmp_path, "aa") == corrected
        return sorted((label.frame, label.verdict, label.moved_from) for label in Labels.open(tmp_path).cuts)

    assert save(14, 30, moved=((14, 10),)) == [(14, "cut", 10), (30, "cut", None)]
    assert save(17, 30, moved=((17, 10),)) == [(17, "cut", 10), (30, "cut", None)]
    assert save(10, 30) == [(10, "cut", None), (30, "cut", None)]
    assert save(14, 30, moved=((14, 10),)) == [(14, "cut", 10), (30, "cut", None)]
    assert save(30) == [(10, "no cut", None), (30, "cut", None)]
    # A manually added cut can be moved as well; a cut that is moved away and another that is added are both known.
    assert save(30, 50)[-1] == (50, "cut", None)
    assert save(30, 52, moved=((52, 50),))[-1] == (52, "cut", 50)
    assert save(10, 14, moved=((14, 10),))[:2] == [(10, "cut", None), (14, "cut", None)]
    with pytest.raises(InvalidArgumentError, match="moved must contain the frame of a cut"):
        CorrectedShots((DetectedCut(10),), moved=((11, 10),))


def test_moved_cut_uses_the_probability_at_its_original_frame() -> None:
    label = CutLabel(video="aa", frame=20, verdict="cut", source="test", given="", moved_from=10)
    assert _probability_near({11: 0.9, 30: 0.5}, label) == 0.9
    assert _probability_near({30: 0.5}, label) == _MIN_PROBABILITY


def test_corrections_are_stored_as_cuts_and_labels(tmp_path: Path) -> None:
    detected = (DetectedCut(10), DetectedCut(30, "dissolve", 0.8, 25, 35))
    corrected = (DetectedCut(12), detected[1])
    assert read_corrected(tmp_path, "aa:1") is None
    write_corrected(
        open_place(tmp_path), "aa:1", CorrectedShots(corrected, ((3, 9),)), detected=detected, source="shots page"
    )
    assert read_corrected(tmp_path, "aa:1") == CorrectedShots(corrected, ((3, 9),))
    labels = {label.frame: label.verdict for label in Labels.open(tmp_path).cuts}
    assert labels == {12: "cut", 30: "cut", 10: "no cut"}
    (file,) = (tmp_path / "review").glob("shots-*.json")
    file.write_text('{"cuts": [{"frame": -1}]}', encoding="utf-8")
    with pytest.raises(CollectionDamagedError, match="delete it to see the detected cuts"):
        read_corrected(tmp_path, "aa:1")
    forget_corrected(tmp_path, "aa:1")
    assert read_corrected(tmp_path, "aa:1") is None
    with pytest.raises(InvalidArgumentError, match="letters and digits"):
        read_corrected(tmp_path, "../aa")
