"""Human corrections of cuts and critical parts, stored as labels to train the shot detector's threshold."""

from __future__ import annotations

import hashlib
import json
import math
import os
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from vidkin._base.arguments import check_arguments, check_constructor
from vidkin._base.files import write_text
from vidkin._base.values import Result, read_json
from vidkin.errors import CollectionDamagedError, InvalidArgumentError
from vidkin.index import Index
from vidkin.index.storage.opening import folder_of, refuse_links
from vidkin.index.storage.place import Place
from vidkin.review.labels import REVIEW_FOLDER, CutLabel, CutVerdict, Labels, is_held_back
from vidkin.review.measure import Judgment, store_review
from vidkin.shots import (
    DetectedCut,
    DetectedCuts,
    ShotDetection,
    build_detection,
    detect,
    open_detector,
    with_threshold,
)


@check_constructor
@dataclass(frozen=True, slots=True)
class CorrectedShots:
    """Shots of a video after human correction.

    Attributes:
        cuts: All cuts, ordered by frame.
        critical: Critical parts as frame ranges [first, last + 1), in order.
        moved: New and original frame of each moved cut.
    """

    cuts: tuple[DetectedCut, ...]
    critical: tuple[tuple[int, int], ...] = ()
    moved: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        previous = 0
        for start, end in self.critical:
            if not previous <= start < end:
                raise InvalidArgumentError(
                    f"critical frames must be in order and not overlap, got [{start}, {end}) after {previous}"
                )
            previous = end
        frames = {cut.frame for cut in self.cuts}
        for frame, origin in self.moved:
            if frame not in frames or origin < 1:
                raise InvalidArgumentError(
                    f"moved must contain the frame of a cut and its original frame, got ({frame}, {origin})"
                )

    def apply_to(self, detected: ShotDetection) -> ShotDetection:
        """Return the detection with these cuts and critical parts."""
        times, critical = detected.frame_times, None
        scores = [shot.critical for shot in detected.shots if shot.critical is not None]
        if len(scores) == len(detected.shots):
            # A critical event happens at the end of a shot, so a corrected shot takes the score of the detected shot
            # with the same end.
            ends = [shot.end_frame for shot in detected.shots[:-1]]
            lasts = [cut.frame - 1 for cut in self.cuts] + [len(times) - 1]
            critical = tuple(scores[bisect_right(ends, last)] for last in lasts)
        cuts = DetectedCuts(self.cuts, detected.curve, critical)
        built = build_detection(detected.path, detected.detector, cuts, times, end=detected.shots[-1].end)
        shots = (
            # A shot that contains a part marked by a person is critical, regardless of the detector.
            replace(shot, critical=1.0)
            if any(start < shot.end_frame and last > shot.start_frame for start, last in self.critical)
            else shot
            for shot in built.shots
        )
        marked = tuple((start, min(last, len(times))) for start, last in self.critical if start < len(times))
        return replace(detected, cuts=built.cuts, shots=tuple(shots), critical=marked)


@check_arguments
def read_corrected(index: Path, video: str) -> CorrectedShots | None:
    """Read the corrected shots of a video; None if there are no corrections.

    Args:
        index: Folder of the index.
        video: Content hash of the video.

    Raises:
        CollectionDamagedError: The file is damaged.
    """
    path = _file(index, video)
    if not os.path.lexists(path):
        return None
    try:
        table = read_json(path)
        critical = tuple((int(start), int(end)) for start, end in table.get("critical", ()))
        moved = tuple((int(frame), int(origin)) for frame, origin in table.get("moved", ()))
        return CorrectedShots(tuple(DetectedCut(**row) for row in table["cuts"]), critical, moved)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, InvalidArgumentError) as error:
        raise CollectionDamagedError(f"{path} is damaged ({error}); delete it to see the detected cuts") from error


@check_arguments
def write_corrected(
    place: Place, video: str, corrected: CorrectedShots, *, detected: Sequence[DetectedCut], source: str
) -> None:
    """Store corrected shots: their cuts are labeled ``cut``, and detected cuts that were removed ``no cut``.

    A moved cut gets a single label, which replaces the label at its original frame.

    Args:
        place: Location of the index, a local folder.
        video: Content hash of the video.
        corrected: Cuts and critical parts.
        detected: Cuts reported by the detector.
        source: Origin of the labels.

    Raises:
        CollectionLockedError: Another process is writing.
    """
    frames = {cut.frame for cut in corrected.cuts}
    verdicts: list[tuple[int, CutVerdict]] = [(frame, "cut") for frame in sorted(frames)]
    moved = {frame: origin for frame, origin in corrected.moved if origin not in frames}
    accounted = frames | set(moved.values())
    verdicts += [(cut.frame, "no cut") for cut in detected if cut.frame not in accounted]
    Labels.judge_cuts(place, video, verdicts, source=source, moved=moved)
    write_text(_file(folder_of(place), video), json.dumps(asdict(corrected)) + "\n")


@check_arguments
def forget_corrected(index: Path, video: str) -> None:
    """Discard the corrections of a video, so that the detected cuts are shown again; the labels are kept."""
    _file(index, video).unlink(missing_ok=True)


@check_arguments
def corrections_version(index: Path) -> str:
    """Return a hash of the correction files' names and modification times, which changes with every correction."""
    files = []
    for path in (index / REVIEW_FOLDER).glob("shots-*.json"):
        with suppress(OSError):  # deleted in the meantime
            files.append((path.name, path.stat().st_mtime_ns))
    files.sort()
    return hashlib.blake2b(repr(files).encode(), digest_size=8).hexdigest()


def _file(index: Path, video: str) -> Path:
    if not video.replace("-", "").replace(":", "").isalnum():
        raise InvalidArgumentError(f"content hash must consist of letters and digits, got {video!r}")
    return index / REVIEW_FOLDER / f"shots-{video.replace(':', '-')}.json"


_FILE, _USED = "cuts.json", "detector.json"

# Lowest threshold for listing transitions; frames without a transition count as having this probability.
_MIN_PROBABILITY = 0.02

# Maximum distance in frames between a verdict and the transition it applies to.
_TOLERANCE = 2


@dataclass(frozen=True, slots=True)
class CutReview(Result):
    """Result of training a shot detector's threshold, evaluated on held-out verdicts.

    Attributes:
        trained_on: Number of training verdicts.
        held_back: Number of held-out verdicts used for evaluation.
        before: F1 score for ``cut`` on the held-out verdicts with the default threshold.
        after: F1 score for ``cut`` on the held-out verdicts with the trained threshold.
        threshold: Trained threshold: minimum probability of a transition.
        judgment: ``better`` or ``worse`` if significantly more or fewer held-out verdicts are correct than with the
            default threshold (sign test at the 10 % level).
        missing: Number of verdicts on videos that are no longer in the index or cannot be read.
        detector: Name of the detector with this threshold, for `vidkin.shots.open_detector`.
    """

    trained_on: int
    held_back: int
    before: float
    after: float
    threshold: float
    judgment: Judgment
    missing: int
    detector: str


@check_arguments
def train_cuts(
    index: Index, *, detector: str = "default", on_progress: Callable[[int, int], None] | None = None
) -> CutReview:
    """Train a shot detector's threshold on the verdicts in an index; :func:`use_detector` enables it.

    Args:
        index: Index with verdicts on cuts.
        detector: Detector whose threshold to train; its confidences must be probabilities.
        on_progress: Callback that receives (videos read, total number of videos).

    Raises:
        InvalidArgumentError: The training or the held-out verdicts include no ``cut`` or no ``no cut``.
        CollectionError: The review folder contains a symbolic link.
    """
    refuse_links(index.path, REVIEW_FOLDER)
    labels = Labels.open(index.path).cuts
    paths = {record.content_hash: record.path for record in index.videos() if record.status == "ok"}
    by_video: dict[str, list[CutLabel]] = {}
    for label in labels:
        if label.video in paths and os.path.exists(paths[label.video]):
            by_video.setdefault(label.video, []).append(label)
    usable = [label for group in by_video.values() for label in group]
    held = [is_held_back(label.video, label.frame) for label in usable]
    truths = [label.verdict == "cut" for label in usable]
    for name, part in (("training", False), ("held-out", True)):
        cuts = [truth for truth, back in zip(truths, held, strict=True) if back is part]
        if len(set(cuts)) < 2:
            raise InvalidArgumentError(
                f"the {name} verdicts must include both `cut` and `no cut`, got {sum(cuts)} and "
                f"{len(cuts) - sum(cuts)} (a third of all verdicts is held out); judge more cuts"
            )
    probabilities: list[float] = []
    detected: list[bool] = []
    for done, (video, group) in enumerate(by_video.items(), start=1):
        all_transitions = _frame_probabilities(paths[video], with_threshold(detector, _MIN_PROBABILITY))
        reported = _frame_probabilities(paths[video], detector)
        probabilities += [_probability_near(all_transitions, label) for label in group]
        detected += [_probability_near(reported, label) > _MIN_PROBABILITY for label in group]
        if on_progress is not None:
            on_progress(done, len(by_video))
    threshold = _fit([(p, truth) for p, truth, back in zip(probabilities, truths, held, strict=True) if not back])
    rows = [
        (before, probability >= threshold, truth)
        for before, probability, truth, back in zip(detected, probabilities, truths, held, strict=True)
        if back
    ]
    review = CutReview(
        trained_on=len(usable) - len(rows),
        held_back=len(rows),
        before=_f1([(before, truth) for before, _, truth in rows]),
        after=_f1([(after, truth) for _, after, truth in rows]),
        threshold=threshold,
        judgment=_judge(rows),
        missing=len(labels) - len(usable),
        detector=with_threshold(detector, threshold),
    )
    write_text(index.path / REVIEW_FOLDER / _FILE, json.dumps(asdict(review)) + "\n")
    store_review(index.path, "cuts", review)
    return review


@check_arguments
def use_detector(place: Place, *, use: bool) -> str:
    """Switch the shots page of an index to the trained threshold, or back to the default detector; return the
    detector's name.

    Raises:
        InvalidArgumentError: No threshold has been trained.
        CollectionError: The review folder contains a symbolic link.
    """
    index = folder_of(place)
    folder = index / REVIEW_FOLDER
    refuse_links(index, REVIEW_FOLDER)
    if not use:
        (folder / _USED).unlink(missing_ok=True)
        return "default"
    try:
        name = str(read_json(folder / _FILE)["detector"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidArgumentError(
            f"no threshold has been trained for {index}; run `vidkin train review --index {index}`"
        ) from error
    open_detector(name)
    write_text(folder / _USED, json.dumps({"detector": name}) + "\n")
    return name


@check_arguments
def read_detector(index: Path) -> str:
    """Return the name of the detector that an index's shots page uses."""
    try:
        return str(read_json(index / REVIEW_FOLDER / _USED)["detector"])
    except FileNotFoundError:
        return "default"
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidArgumentError(
            f"{index / REVIEW_FOLDER / _USED} is damaged ({error}); delete it to use the default detector"
        ) from error


def _frame_probabilities(path: str, detector: str) -> dict[int, float]:
    """Map every frame inside a transition reported by a detector to the transition's probability."""
    probabilities: dict[int, float] = {}
    for cut in detect(path, detector).cuts:
        for frame in range(cut.start_frame, cut.end_frame + 1):
            probabilities[frame] = max(probabilities.get(frame, 0.0), cut.confidence)
    return probabilities


def _probability_near(probabilities: Mapping[int, float], label: CutLabel) -> float:
    """Return the maximum probability near a judged frame and, for a moved cut, near the frame where it was detected."""
    around = [frame for frame in (label.frame, label.moved_from) if frame is not None]
    frames = {near for frame in around for near in range(frame - _TOLERANCE, frame + _TOLERANCE + 1)}
    return max((probabilities[each] for each in frames if each in probabilities), default=_MIN_PROBABILITY)


def _fit(examples: Sequence[tuple[float, bool]]) -> float:
    """Choose the threshold with the highest F1, in the middle of the widest gap between probabilities.

    If cuts do not have a higher mean probability than other frames, the threshold is 0.5.
    """
    yes, no = ([probability for probability, truth in examples if truth is verdict] for verdict in (True, False))
    if fmean(yes) <= fmean(no):
        return 0.5

    def rate(gap: tuple[float, float]) -> tuple[float, float]:
        return _f1([(probability >= gap[1], truth) for probability, truth in examples]), gap[1] - gap[0]

    below, above = max(pairwise([0.0, *sorted({probability for probability, _ in examples})]), key=rate)
    return min(max((below + above) / 2, _MIN_PROBABILITY), 0.98)


def _f1(rows: Sequence[tuple[bool, bool]]) -> float:
    correct = sum(prediction and truth for prediction, truth in rows)
    return 2 * correct / max(sum(prediction for prediction, _ in rows) + sum(truth for _, truth in rows), 1)


def _judge(rows: Sequence[tuple[bool, bool, bool]]) -> Judgment:
    """Apply a sign test at the 10 % level to the verdicts on which exactly one of the two thresholds is correct."""
    gained = sum(after == truth != before for before, after, truth in rows)
    lost = sum(before == truth != after for before, after, truth in rows)
    total = gained + lost
    p_value = sum(math.comb(total, count) for count in range(max(gained, lost), total + 1)) / 2**total
    if p_value > 0.1:
        return "no clear difference"
    return "better" if gained > lost else "worse"
