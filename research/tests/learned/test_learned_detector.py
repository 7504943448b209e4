"""The learned detector on real files: network features, rules fitted on other files, and `detect` by name."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from subprocess import run

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tests.support.videos import encode, pan
from vidkin.errors import InvalidArgumentError, UnknownExtractorError
from vidkin.models import ClipEncoder, EncoderConfig, build_model, save_model
from vidkin.models.weights import load_weights
from vidkin.shots import RgbFrame, ShotAnnotation, VideoAnnotation, detect
from vidkin_research.learned.clips import ShotClips, ShotNetwork, encode_with, video_features
from vidkin_research.learned.detector import (
    LearnedDetector,
    ShotRules,
    fit_shot_rules,
    open_learned,
)
from vidkin_research.learned.fitted_rule import FittedRule
from vidkin_research.learned.objective import ShotRecipe, train_on_shots

CONFIG = EncoderConfig(kind="clip", backbone="small", width=0.5, hidden=32, lstm=32, frames=6, size=32, fit="stretch")
NAMES = ("astronaut", "coffee", "chelsea", "rocket", "brick", "grass")


def film(path: Path, *shots: tuple[str, int], seed: int) -> list[tuple[int, int]]:
    """A film with a moving camera over photographs; its shots as [start, end) frames."""
    frames = [frame for name, count in shots for frame in pan(name, count, width=96, height=64, seed=seed)]
    # Without mbtree the encoding by x264 is reproducible, and therefore the training.
    encode(path, frames, rate=25, options={"mbtree": "0"})
    edges = np.cumsum([0, *(count for _, count in shots)]).tolist()
    return list(pairwise(edges))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small network with a head trained on triplets of four films, and rules; first shots are labeled critical."""
    place = tmp_path_factory.mktemp("model")
    torch.set_num_threads(1)  # on a shared machine, more threads slow down such small steps
    model = build_model(CONFIG, seed=1).eval()
    assert isinstance(model, ClipEncoder)
    labels, features = [], []
    for number in range(4):
        names = NAMES[number % 3 :] + NAMES[: number % 3]
        shots = [(name, 16 + 3 * n) for n, name in enumerate(names)]
        labels.append(film(place / f"{number}.mp4", *shots, seed=number))
        features.append(video_features(model, place / f"{number}.mp4", size=32).rows)
    annotations = [
        VideoAnnotation(place / f"{number}.mp4", 25.0, tuple(ShotAnnotation(*shot) for shot in shots))
        for number, shots in enumerate(labels)
    ]
    clips = ShotClips([torch.from_numpy(rows) for rows in features], annotations, window=6)
    train_on_shots(
        model,
        clips,
        ShotRecipe(loss="triplet", window=6, steps=30, learning_rate=3e-3, quadlets=8, triplets=8),
    )
    critical = [[shot == 0 for shot in range(len(shots))] for shots in labels]
    rules = fit_shot_rules(features, labels, encode_with(model), window=6, critical=critical, fitted_on="4 films")
    save_model(model, place / "model")
    rules.save(place / "model")
    return place / "model"


def test_model_folder_detects_the_cuts_of_an_unseen_film(folder: Path, tmp_path: Path) -> None:
    shots = film(tmp_path / "film.mp4", ("coffee", 30), ("rocket", 25), ("chelsea", 40), seed=77)
    detection = detect(tmp_path / "film.mp4", f"learned:{folder}")
    assert detection.detector == f"learned:{folder}"
    # After 30 steps the network may report one false cut, but none is missed or misplaced.
    assert {start for start, _ in shots[1:]} <= {cut.frame for cut in detection.cuts if cut.kind == "hard"}
    assert len(detection.cuts) <= 3
    assert detection.cuts[0].time == pytest.approx(detection.cuts[0].frame / 25)
    assert all(0.5 <= cut.confidence <= 1 for cut in detection.cuts)
    assert all(shot.critical is not None and 0 <= shot.critical <= 1 for shot in detection.shots)
    assert detection.curve is not None
    assert detection.curve.values.shape == (95,)
    # The red dots in Figure 3 of the publication: the curve is high at a cut and restarts after it. Nothing is asserted
    # about jumps between frames: in such a small network the camera motion over the photograph causes them as well.
    assert detection.curve.values[30] > 2 * np.median(detection.curve.values[:30])
    assert detection.curve.values[31] == 0.0


@pytest.mark.process
def test_model_folder_works_without_torch(folder: Path, tmp_path: Path) -> None:
    film(tmp_path / "film.mp4", ("coffee", 30), ("rocket", 25), seed=77)
    code = (
        "import sys; sys.modules['torch'] = None; from vidkin.shots import detect; "
        "print([(cut.frame, cut.kind, round(cut.confidence, 3)) for cut in detect(*sys.argv[1:]).cuts])"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "film.mp4"), str(folder)]
    done = run(command, capture_output=True, text=True, check=False)
    network = build_model(CONFIG, seed=1)
    load_weights(network, folder / "model.safetensors", label="model")
    detector = LearnedDetector(ShotNetwork(network.eval()), ShotRules.load(folder), size=32)
    expected = [(cut.frame, cut.kind, round(cut.confidence, 3)) for cut in detect(tmp_path / "film.mp4", detector).cuts]
    assert (done.stdout.strip(), done.stderr) == (str(expected), "")


class Colors:
    """Uses mean colors as features."""

    def frame_features(self, images: NDArray[np.float32]) -> NDArray[np.float32]:
        return images.mean((2, 3)) + np.float32(0.1)

    def head(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        mean = features.mean(1)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)


def test_frame_network_runs_once_per_frame() -> None:
    class Counting(Colors):
        """Counts the frames."""

        frames = 0

        def frame_features(self, images: NDArray[np.float32]) -> NDArray[np.float32]:
            self.frames += len(images)
            return super().frame_features(images)

    model = Counting()
    rules = ShotRules(window=8, cut=FittedRule({"jump": 2.0, "across": 10.0}, -12.0))
    detector = LearnedDetector(model, rules, size=16)
    colors = np.array([[200, 30, 30]] * 37 + [[30, 30, 200]] * 20, dtype=np.uint8)
    for index, color in enumerate(colors):
        detector.push(RgbFrame(index, index / 25, np.broadcast_to(color, (16, 16, 3)).copy()))
    found = detector.finish()
    assert [cut.frame for cut in found.cuts] == [37]
    assert model.frames == 57
    assert found.critical is None
    assert LearnedDetector(model, rules, size=16).finish().cuts == ()


def test_rate_skips_frames_and_keeps_frame_numbers() -> None:
    rules = ShotRules(window=2, rate=10.0, cut=FittedRule({"jump": 2.0, "across": 10.0}, -12.0))
    detector = LearnedDetector(Colors(), rules, size=16)
    for index in range(90):
        color = (200, 30, 30) if index < 45 else (30, 30, 200)
        detector.push(RgbFrame(index, index / 30, np.full((16, 16, 3), color, dtype=np.uint8)))
    (cut,) = detector.finish().cuts
    # Every third frame is used, including the first of the new shot.
    assert cut.frame == 45


def test_invalid_arguments_are_rejected_with_the_accepted_values(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownExtractorError, match="contains no model"):
        open_learned(tmp_path)
    picture = EncoderConfig(kind="image", backbone="small", width=0.5, hidden=16, size=32)
    save_model(build_model(picture), tmp_path / "image")
    with pytest.raises(InvalidArgumentError, match="the model must be of kind 'clip' to detect shots, got 'image'"):
        open_learned(tmp_path / "image")
    save_model(build_model(CONFIG), tmp_path / "clip")
    with pytest.raises(
        InvalidArgumentError,
        match="this model cannot detect shots; train a shot detector with `vidkin train-shots`",
    ):
        open_learned(tmp_path / "clip")
    with pytest.raises(InvalidArgumentError, match="size must be at least 8, got 4"):
        LearnedDetector(Colors(), ShotRules.load(folder), size=4)


def test_learned_critical_shots_can_use_the_cuts_of_the_default_detector(folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(folder, model)
    rules = replace(ShotRules.load(folder), method="default", cut=None, gradual=None)
    rules.save(model)
    assert ShotRules.load(model) == rules
    film(tmp_path / "film.mp4", ("coffee", 30), ("rocket", 25), ("chelsea", 40), seed=77)
    own, plain = (detect(tmp_path / "film.mp4", name) for name in (f"learned:{model}", "default"))
    assert [cut.frame for cut in plain.cuts] == [30, 55]
    assert [(cut.frame, cut.kind) for cut in own.cuts] == [(cut.frame, cut.kind) for cut in plain.cuts]
    assert all(shot.critical is None for shot in plain.shots)
    assert all(shot.critical is not None for shot in own.shots)
    with pytest.raises(InvalidArgumentError, match="method 'default' must have no rule for cuts"):
        replace(rules, cut=ShotRules.load(folder).cut)
