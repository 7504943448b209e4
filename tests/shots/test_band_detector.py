"""The band detector: features by hand, the network on files, whole videos."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.support.videos import encode, pan
from vidkin.errors import InvalidArgumentError
from vidkin.media import FramePlanes, iter_planes, write_video
from vidkin.metric.measures import boundary_scores
from vidkin.shots import band, detect, open_detector
from vidkin.shots.band import BAND_CHANNELS, BAND_LAGS, BandFeatures, TransitionSession, band_features
from vidkin.shots.training.judging import cut_boundaries, evaluate_cuts, read_boundary_labels

DATA = Path(band.__file__).with_name("data")


def planes_of(luma: np.ndarray) -> FramePlanes:
    length, height, width = luma.shape
    chroma = np.full((length, 2, height // 2, width // 2), 128, np.uint8)
    return FramePlanes(luma.astype(np.uint8), chroma, np.arange(length) / 25)


def noise(length: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (length, 36, 64))


def test_a_still_has_no_distances() -> None:
    features = band_features(planes_of(np.repeat(noise(1), 40, 0)))
    assert features.shape == (40, BAND_CHANNELS)
    assert np.abs(features[:, : 4 * len(BAND_LAGS)]).max() < 2e-3
    assert np.abs(features[:, -4:]).max() == 0


def test_a_cut_shows_at_every_lag_that_spans_it() -> None:
    luma = np.concatenate([np.repeat(noise(1, 1), 20, 0), np.repeat(noise(1, 2), 20, 0)])
    structure = band_features(planes_of(luma))[:, : len(BAND_LAGS)]
    for column, lag in enumerate(BAND_LAGS):
        spans = [t for t in range(lag, 40) if t - lag < 20 <= t]
        others = [t for t in range(40) if t not in spans]
        # Independent unit vectors are sqrt(2) apart.
        assert structure[spans, column] == pytest.approx(2**0.5, abs=0.12)
        assert structure[others, column].max() < 2e-3


def test_structure_does_not_see_brightness() -> None:
    base = np.random.default_rng(3).integers(60, 120, (1, 36, 64))
    luma = np.concatenate([base, base + 80])
    features = band_features(planes_of(luma))
    assert features[1, 0] < 0.02
    assert features[1, len(BAND_LAGS)] > 0.2  # color and brightness
    assert features[1, -4] == pytest.approx(8 * 80 / 255, abs=1e-4)


def test_blocks_change_nothing() -> None:
    whole = planes_of(noise(90))
    expected = band_features(whole)
    parts = BandFeatures()
    for first, last in ((0, 1), (1, 8), (8, 70), (70, 70), (70, 90)):
        parts.push(FramePlanes(whole.luma[first:last], whole.chroma[first:last], whole.timestamps[first:last]))
    np.testing.assert_allclose(parts.take(), expected, atol=1e-6)


def test_no_frames_have_no_features() -> None:
    assert BandFeatures().take().shape == (0, BAND_CHANNELS)


def test_pieces_of_a_long_video_change_nothing() -> None:
    network = TransitionSession(DATA / "band.onnx")
    features = np.random.default_rng(0).random((9000, BAND_CHANNELS), np.float32)
    (expected,) = network._session.run(None, {"features": features[None]})
    np.testing.assert_allclose(network.probabilities(features), expected[0], atol=1e-5)
    assert network.probabilities(features[:0]).shape == (0, 2)


def test_files_that_hold_no_band_network_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "network.safetensors"
    path.write_bytes(b"something else")
    with pytest.raises(InvalidArgumentError, match=r"network\.safetensors: not a network of transitions"):
        open_detector(f"band?weights={path}")


def test_weights_that_are_not_finite_are_refused(tmp_path: Path) -> None:
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


def test_times_of_a_variable_rate_are_right_to_a_frame(tmp_path: Path) -> None:
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
