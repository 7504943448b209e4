"""The band detector: its network on files, whole videos."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.support.videos import encode, pan
from vidkin.errors import InvalidArgumentError
from vidkin.media import iter_planes, write_video
from vidkin.metric.measures import boundary_scores
from vidkin.shots import detect, open_detector
from vidkin_research.detectors import band as band_detector
from vidkin_research.learned.judging import cut_boundaries, evaluate_cuts, read_boundary_labels

DATA = Path(band_detector.__file__).with_name("data")


def test_files_without_a_band_network_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "network.safetensors"
    path.write_bytes(b"something else")
    with pytest.raises(InvalidArgumentError, match=r"network\.safetensors: not a network of transitions"):
        open_detector(f"band?weights={path}")


def test_weights_that_are_not_finite_are_rejected(tmp_path: Path) -> None:
    """They would find no cut in anything, and say nothing."""
    weights = load_file(DATA / "band.safetensors")
    weights["enter.bias"][0] = float("nan")
    save_file(weights, tmp_path / "network.safetensors")
    with pytest.raises(InvalidArgumentError, match=r"network\.safetensors: .* has values that are not finite"):
        open_detector(f"band?weights={tmp_path / 'network.safetensors'}")


def film(path: Path, *, flash: bool = False) -> Path:
    """Three shots of 40 frames, with a dissolve of 12 frames between the second and the third."""
    one, two, three = (np.stack(list(pan(name, 52))).astype(float) for name in ("coffee", "rocket", "chelsea"))
    mix = np.linspace(0, 1, 14)[1:-1, None, None, None]
    frames = np.concatenate([one[:40], two[:40], two[40:] * (1 - mix) + three[:12] * mix, three[12:52]])
    if flash:
        frames[20] = frames[20] * 0.2 + 255 * 0.8
    return encode(path, frames.clip(0, 255).astype(np.uint8), rate=25)


def test_cut_and_dissolve_are_found_and_a_flash_is_not(tmp_path: Path) -> None:
    detection = detect(film(tmp_path / "film.mp4", flash=True), "band")
    assert [cut.kind for cut in detection.cuts] == ["hard", "gradual"]
    assert detection.cuts[0].frame == 40
    assert detection.cuts[0].time == pytest.approx(40 / 25)
    assert detection.cuts[1].start_frame == pytest.approx(80, abs=4)
    assert detection.cuts[1].end_frame == pytest.approx(91, abs=4)
    assert [shot.start_frame for shot in detection.shots] == [0, 40, detection.cuts[1].frame]
    assert detection.curve is not None
    assert len(detection.curve.values) == 132


def test_times_of_a_variable_rate_are_exact_to_a_frame(tmp_path: Path) -> None:
    frames = [*pan("coffee", 30), *pan("rocket", 30)]
    steps = np.random.default_rng(0).uniform(0.02, 0.08, 60)
    times = np.concatenate([[0], np.cumsum(steps)[:-1]])
    path = tmp_path / "variable.mp4"
    write_video(path, frames, rate=25, times=times.tolist())
    (cut,) = detect(path, "band").cuts
    assert cut.frame == 30
    assert cut.time == pytest.approx(times[30], abs=0.002)


def test_thresholds_are_settings(tmp_path: Path) -> None:
    path = film(tmp_path / "film.mp4")
    assert len(detect(path, "band?hard=0.999999&gradual=0.999999").cuts) < 2
    with pytest.raises(InvalidArgumentError, match="has no setting 'soft'; choose from gradual, hard, weights"):
        open_detector("band?soft=1")


def test_short_videos(tmp_path: Path) -> None:
    for count in (1, 2, 5):
        detection = detect(encode(tmp_path / f"{count}.mp4", pan("coffee", count), rate=25), "band")
        assert detection.cuts == ()
        assert len(detection.shots) == 1


@pytest.mark.data
def test_sintel(shared_data: Path) -> None:
    """The target: 9 of 10 hard cuts with at most 2 false ones, 10 of 15 gradual transitions."""
    labels = read_boundary_labels(shared_data / "shots" / "truth.json")["sintel_trailer.mp4"]
    cuts = detect(shared_data / "shots" / "sintel_trailer.mp4", "band").cuts
    scores = evaluate_cuts([(cuts, labels)], tolerance=2)
    assert scores.hard.true_positives >= 9
    assert scores.hard.false_positives <= 2
    assert scores.gradual_found >= 10
    # As the matching of the measure says it: what is matched beside the hard cuts are transitions.
    pooled = boundary_scores(cut_boundaries(cuts), labels.boundaries, tolerance=2)
    assert pooled.true_positives >= 19


@pytest.mark.data
def test_every_frame_of_real_files_is_sampled(shared_data: Path) -> None:
    for name, frames in (("bikes.mp4", 250), ("fades.mp4", 250), ("sintel_trailer.mp4", 1252)):
        assert sum(len(block) for block in iter_planes(shared_data / "shots" / name)) == frames
