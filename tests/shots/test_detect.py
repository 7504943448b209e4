"""From a file to its shots, with a detector that reports given cuts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import av
import numpy as np
import pytest

from tests.support.detections import cut_video
from tests.support.videos import encode, pan
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.media import write_video
from vidkin.shots import (
    DetectedCut,
    DetectedCuts,
    KnownCutsDetector,
    RgbFrame,
    build_detection,
    detect,
    detect_shots,
    merge_short_shots,
)


@pytest.mark.process
@pytest.mark.parametrize("way", ["command", "library"])
def test_cuts_are_found_without_training_libraries(tmp_path: Path, way: str) -> None:
    film = cut_video(tmp_path / "film.mp4")
    calls = {
        "command": "import sys; sys.argv = ['vidkin', 'shots', '-fjson', film]; from vidkin.cli import main; main()",
        "library": "import vidkin; print(len(vidkin.detect_shots(film)), 'shots')",
    }
    code = (
        "import sys; film, = sys.argv[1:]; names = 'torch torchvision timm scipy sklearn skimage matplotlib'.split()\n"
        f"sys.modules.update(dict.fromkeys(names))\ntry:\n    {calls[way]}\n"
        "finally:\n    print([name for name in sys.modules if name.partition('.')[0] in names and sys.modules[name]])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(film)], capture_output=True, text=True, check=True)
    found, _, loaded = done.stdout.strip().rpartition("\n")
    assert loaded == "[]"
    shots = json.loads(found)["videos"][0]["shots"] if way == "command" else int(found.split()[0]) * [None]
    assert len(shots) == len(detect_shots(film))


class Watcher(KnownCutsDetector):
    """Records the frames it receives."""

    def __init__(self) -> None:
        super().__init__()
        self.frames: list[RgbFrame] = []

    def push(self, frame: RgbFrame) -> None:
        super().push(frame)
        self.frames.append(frame)


def test_part_can_be_given_by_frame_numbers_or_times(tmp_path: Path) -> None:
    film = cut_video(tmp_path / "film.mp4")
    detector, other = Watcher(), Watcher()
    part = detect(film, detector, start="15f", end="51f")
    assert (part.shots[0].start_frame, part.shots[-1].end_frame, len(detector.frames)) == (15, 51, 36)
    detect(film, other, start="0:01.5", end="00:00:05.1")
    assert len(other.frames) == 36
    with pytest.raises(InvalidArgumentError, match=r"invalid time 'soon'; use seconds"):
        detect(film, Watcher(), start="soon")


def test_detector_gets_every_frame_once_in_order(tmp_path: Path) -> None:
    detector = Watcher()
    calls: list[tuple[float, float | None]] = []
    detect(
        cut_video(tmp_path / "film.mp4"),
        detector,
        on_progress=lambda done, total: calls.append((done, total)),
    )
    assert [frame.index for frame in detector.frames] == list(range(60))
    assert [frame.time for frame in detector.frames] == pytest.approx([k / 10 for k in range(60)])
    assert {frame.image.shape for frame in detector.frames} == {(32, 48, 3)}
    assert calls[-1] == (60, 60)


def test_cuts_in_frames_become_shots_in_seconds(tmp_path: Path) -> None:
    detector = KnownCutsDetector(
        [DetectedCut(20, confidence=0.9), DetectedCut(45, "dissolve", 0.6, 43, 47)], critical=(0.0, 1.0, 0.2)
    )
    detection = detect(cut_video(tmp_path / "film.mp4"), detector)
    assert detection.detector == "known"
    assert [
        (shot.start_frame, shot.end_frame, shot.kind, shot.confidence, shot.critical) for shot in detection.shots
    ] == [(0, 20, "start", 1.0, 0.0), (20, 45, "hard", 0.9, 1.0), (45, 60, "dissolve", 0.6, 0.2)]
    assert [(shot.start, shot.end) for shot in detection.shots] == [(0.0, 2.0), (2.0, 4.5), (4.5, 6.0)]
    hard, dissolve = detection.cuts
    assert (hard.start, hard.time, hard.end) == (2.0, 2.0, 2.0)
    assert (dissolve.start, dissolve.time, dissolve.end) == (4.3, 4.5, 4.7)
    assert (dissolve.start_frame, dissolve.end_frame) == (43, 47)


@pytest.mark.parametrize("name", ["shotdetect", "cuts"])
def test_part_of_a_video_has_the_frames_and_times_of_the_whole(tmp_path: Path, name: str) -> None:
    """Cuts are at 2.0 and 4.5 s; the part from 1.45 to 5.05 s has frames 15 to 50."""
    film = cut_video(tmp_path / "film.mp4")
    part = detect(film, name, start=1.45, end=5.05)
    assert [(shot.start_frame, shot.end_frame) for shot in part.shots] == [(15, 20), (20, 45), (45, 51)]
    assert [(shot.start, shot.end) for shot in part.shots] == [
        (1.5, 2.0),
        (2.0, 4.5),
        (4.5, pytest.approx(5.1)),
    ]
    assert [(cut.frame, cut.time) for cut in part.cuts] == [(20, 2.0), (45, 4.5)]
    assert part.frame_times == pytest.approx(np.arange(51) / 10)
    assert part.curve is not None
    assert 1.5 <= part.curve.times[0] <= 1.6
    assert part.curve.times[-1] == pytest.approx(5.0)


def test_detector_gets_only_frames_from_the_start_of_the_part(tmp_path: Path) -> None:
    detector = Watcher()
    detect(cut_video(tmp_path / "film.mp4"), detector, start=2.0, end=3.0)
    assert [frame.index for frame in detector.frames] == list(range(10))
    assert [frame.time for frame in detector.frames] == pytest.approx([k / 10 for k in range(10)])


def test_invalid_parts_are_rejected(tmp_path: Path) -> None:
    film = cut_video(tmp_path / "film.mp4")
    with pytest.raises(MediaError, match=r"film.mp4: it has no frames between 60 s and the end"):
        detect(film, "shotdetect", start=60.0)
    with pytest.raises(InvalidArgumentError, match=r"end after start, got 3.0 and 2.0"):
        detect(film, "shotdetect", start=3.0, end=2.0)


def test_detect_shots_returns_shots(tmp_path: Path) -> None:
    shots = detect_shots(cut_video(tmp_path / "film.mp4"), "shotdetect")
    assert [(shot.start, shot.kind) for shot in shots] == [(0.0, "start"), (2.0, "hard"), (4.5, "hard")]


def test_video_ends_after_its_last_frame() -> None:
    """The last frame lasts for the median interval, or until the end stated by the file; a single frame 1/25 s."""
    no_cuts = DetectedCuts(())
    assert build_detection("a.mp4", "known", no_cuts, np.array([0.0, 0.5, 1.0])).shots[-1].end == 1.5
    assert build_detection("a.mp4", "known", no_cuts, np.array([0.0, 0.5, 1.0]), end=4.0).shots[-1].end == 4.0
    assert build_detection("a.mp4", "known", no_cuts, np.array([0.0])).shots[-1].end == 0.04


def test_cuts_after_the_end_are_reported_as_errors_of_the_detector() -> None:
    times = np.arange(10) / 10
    for cut in (DetectedCut(10), DetectedCut(8, "fade", start_frame=7, end_frame=10)):
        with pytest.raises(
            InvalidArgumentError,
            match=r"a\.mp4: detector 'bad' reports a cut at frame 10, but the video has 10 frames",
        ):
            build_detection("a.mp4", "bad", DetectedCuts((cut,)), times)


def test_known_cuts_after_the_end_are_dropped() -> None:
    detector = KnownCutsDetector([DetectedCut(3), DetectedCut(8)], critical=(0.1, 0.2, 0.3), name="list")
    for index in range(6):
        detector.push(RgbFrame(index, index / 25, np.zeros((4, 4, 3), np.uint8)))
    assert detector.name == "list"
    assert len(detector.frame_times) == 6
    cuts = detector.finish()
    assert [cut.frame for cut in cuts.cuts] == [3]
    assert cuts.critical == (0.1, 0.2)


def test_missing_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match="there is no such file"):
        detect(tmp_path / "gone.mp4", "shotdetect")


def test_fade_at_either_end_of_a_video_starts_no_shot() -> None:
    """At ten frames per second: a fade-in over frames 0 to 9, a fade over 40 to 49, and a fade-out over 90 to 99."""
    spans = (0, 9), (40, 49), (90, 99)
    cuts = tuple(DetectedCut((first + last + 1) // 2, "fade", 0.9, first, last) for first, last in spans)
    found = build_detection("film.mp4", "known", DetectedCuts(cuts), np.arange(100) / 10)
    assert [(shot.start_frame, shot.end_frame) for shot in found.shots] == [(0, 45), (45, 100)]
    assert [shot.kind for shot in found.shots] == ["fade", "fade"]
    assert [(shot.transition_start, shot.transition_end) for shot in found.shots] == [(0.0, 0.9), (4.0, 4.9)]
    assert len(found.cuts) == 3
    # Merging short shots keeps transitions that do not separate shots.
    assert merge_short_shots(found, 1.0).cuts == found.cuts
    assert len(merge_short_shots(found, 5.0).cuts) == 2


def test_cut_to_black_before_a_fade_in_starts_no_shot() -> None:
    """At 10 fps: a cut to black at frame 30 and a fade-in over 36 to 45; later, a cut to black without a fade-in."""
    cuts = (
        DetectedCut(30, confidence=0.99, is_to_ground=True),
        DetectedCut(41, "fade", 0.9, 36, 45),
        DetectedCut(70, is_to_ground=True),
        DetectedCut(80),
    )
    given = DetectedCuts(cuts, critical=(0.1, 0.2, 0.3, 0.4, 0.5))
    found = build_detection("film.mp4", "known", given, np.arange(100) / 10)
    assert [(shot.start_frame, shot.kind, shot.critical) for shot in found.shots] == [
        *((0, "start", 0.1), (41, "fade", 0.3), (70, "hard", 0.4), (80, "hard", 0.5)),
    ]
    assert (found.shots[0].end, found.shots[1].transition_start, found.shots[1].transition_end) == (4.1, 3.0, 4.5)
    assert [cut.frame for cut in found.cuts] == [30, 41, 70, 80]
    # If a user removes the fade, a shot begins at the cut.
    rest = build_detection("film.mp4", "known", DetectedCuts((cuts[0], *cuts[2:])), np.arange(100) / 10)
    assert [shot.start_frame for shot in rest.shots] == [0, 30, 70, 80]


def test_fade_out_before_a_cut_from_black_starts_no_shot() -> None:
    """At ten frames per second: a fade-out over frames 30 to 39, and a cut to the next shot at frame 45."""
    cuts = (DetectedCut(35, "fade", 0.9, 30, 39), DetectedCut(45, confidence=0.99, is_from_ground=True))
    given = DetectedCuts(cuts, critical=(0.1, 0.2, 0.3))
    found = build_detection("film.mp4", "known", given, np.arange(100) / 10)
    assert [(shot.start_frame, shot.kind, shot.critical) for shot in found.shots] == [
        *((0, "start", 0.1), (45, "fade", 0.3)),
    ]
    assert (found.shots[0].end, found.shots[1].transition_start, found.shots[1].transition_end) == (4.5, 3.0, 4.5)
    assert [cut.frame for cut in found.cuts] == [35, 45]


def test_shot_after_a_cut_has_a_transition_of_zero_length() -> None:
    cuts = DetectedCuts((DetectedCut(30, "jump", 0.8, kind_confidence=0.7),))
    first, second = build_detection("film.mp4", "known", cuts, np.arange(100) / 10).shots
    assert (first.kind, first.transition_start, first.transition_end, first.kind_confidence) == ("start", 0.0, 0.0, 1.0)
    assert (second.kind, second.kind_confidence) == ("jump", 0.7)
    assert (second.transition_start, second.transition_end) == (3.0, 3.0)


def test_dissolve_of_two_seconds_between_moving_shots_is_found_with_most_of_its_extent(tmp_path: Path) -> None:
    """The dissolve covers frames 40 to 89 of 140, and is found within 20 frames at either end."""
    before, after = (np.stack(list(pan(name, 140))).astype(np.float32) for name in ("coffee", "rocket"))
    parts = ((np.arange(140) - 39) / 51).clip(0, 1)[:, None, None, None]
    path = tmp_path / "film.mp4"
    write_video(path, (before * (1 - parts) + after * parts).astype(np.uint8), rate=25)
    found = detect(path)
    (cut,) = found.cuts
    assert cut.kind == "dissolve"
    assert abs(cut.start_frame - 40) <= 20
    assert abs(cut.end_frame - 89) <= 20
    assert [shot.kind for shot in found.shots] == ["start", "dissolve"]
    assert (found.shots[1].transition_start, found.shots[1].transition_end) == (cut.start, cut.end)


@pytest.mark.parametrize("copy", ["plain", "10 bit", "interlaced", "120 frames a second", "variable frame rate"])
def test_differently_encoded_copies_of_a_film_have_the_same_cuts(copy: str, tmp_path: Path) -> None:
    """At 24 frames per second, the cuts are at frames 40 and 80."""
    frames = [frame for name in ("coffee", "rocket", "chelsea") for frame in pan(name, 40)]
    film = tmp_path / "film.mp4"
    if copy == "120 frames a second":
        encode(film, (frame for frame in frames for _ in range(5)), rate=120)
    elif copy == "variable frame rate":
        kept = [place for place in range(len(frames)) if place % 3 < 2 or place == 80]
        encode(film, [frames[place] for place in kept], rate=24, times=[place / 24 for place in kept])
    else:
        options = {"x264-params": "tff=1"} if copy == "interlaced" else {}
        pixels = "yuv420p10le" if copy == "10 bit" else "yuv420p"
        encode(film, frames, rate=24, pixel_format=pixels, options=options)
    with av.open(str(film)) as container:
        picture = next(container.decode(video=0))
        assert isinstance(picture, av.VideoFrame)
        assert picture.interlaced_frame is (copy == "interlaced")
        assert picture.format.name.endswith("10le") is (copy == "10 bit")
    cuts = detect(film).cuts
    assert [cut.kind for cut in cuts] == ["hard", "hard"]
    assert [cut.time for cut in cuts] == pytest.approx([40 / 24, 80 / 24], abs=0.003)
