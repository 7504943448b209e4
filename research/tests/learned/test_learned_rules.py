"""The rules of the learned detector end to end on synthetic features, and their file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from research.tests.learned.test_windows_hard_cuts import dissolve, mean_direction, scene

from vidkin.errors import InvalidArgumentError
from vidkin_research.learned.detector import ShotRules, find_shots, fit_shot_rules
from vidkin_research.learned.fitted_rule import FittedRule

Array = NDArray[np.float32]
Shots = list[tuple[int, int]]


def event(seed: int, calm: int, rising: int) -> Array:
    """A calm scene that changes direction over its last frames."""
    old, new = scene(seed, calm + rising), scene(seed + 500, calm + rising)
    share = np.clip((np.arange(calm + rising) - calm + 1) / (2 * rising), 0, None)[:, None]
    part: Array = ((1 - share) * old + share * new).astype(np.float32)
    return part


def video(seed: int) -> tuple[Array, Shots, list[bool]]:
    """Calm, event | calm | calm, dissolve, calm: two hard cuts, one gradual transition, one critical shot."""
    parts = [event(seed, 24, 12), scene(seed + 1, 30), dissolve(scene(seed + 2, 40), scene(seed + 3, 40), 10)]
    return np.concatenate(parts), [(0, 36), (36, 66), (66, 106), (116, 156)], [True, False, False, False]


def fit_rules() -> ShotRules:
    videos = [video(1000 + 10 * n) for n in range(6)]
    return fit_shot_rules(
        [features for features, _, _ in videos],
        [shots for _, shots, _ in videos],
        mean_direction,
        window=8,
        critical=[critical for _, _, critical in videos],
        fitted_on="six videos made by hand",
    )


def test_rules_fitted_on_some_videos_work_on_another() -> None:
    features, shots, _ = video(7)
    analysis = find_shots(features, mean_direction, fit_rules())
    assert [frame for frame, _ in analysis.cuts] == [36, 66]
    (gradual,) = analysis.gradual
    assert abs(gradual.first - 106) <= 3
    assert abs(gradual.last - 115) <= 3
    assert len(analysis.stretches) == 4
    assert analysis.stretches[0] == shots[0]
    assert analysis.critical is not None
    assert [score >= 0.5 for score in analysis.critical] == [True, False, False, False]
    # The curve is 0 in the first window of a shot and jumps at a cut.
    assert analysis.curve.shape == (156,)
    assert analysis.curve[7] == 0.0
    assert analysis.curve[36] > analysis.curve[20] + 0.1
    assert analysis.curve[37:44].tolist() == [0.0] * 7


def test_rules_round_trip(tmp_path: Path) -> None:
    rules = fit_rules()
    assert rules.save(tmp_path) == tmp_path / "shots.json"
    assert ShotRules.load(tmp_path) == rules
    only_cuts = ShotRules(window=4, rate=12.5, cut=FittedRule({"jump": 1.0}, -3.0), method="slope")
    only_cuts.save(tmp_path)
    assert ShotRules.load(tmp_path) == only_cuts
    analysis = find_shots(video(7)[0], mean_direction, only_cuts)
    assert analysis.gradual == ()
    assert analysis.critical is None
    assert [path.name for path in tmp_path.iterdir()] == ["shots.json"]


def test_rules_are_omitted_without_transitions_or_critical_shots() -> None:
    videos = [np.concatenate([scene(n, 30), scene(n + 50, 30)]) for n in range(4)]
    rules = fit_shot_rules(videos, [[(0, 30), (30, 60)]] * 4, mean_direction, window=4)
    assert rules.gradual is None
    assert rules.critical is None


def test_invalid_arguments_are_rejected_with_the_accepted_values(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidArgumentError,
        match=r"shots\.json: cannot be read .*cannot detect shots; train a shot detector",
    ):
        ShotRules.load(tmp_path)
    (tmp_path / "shots.json").write_text("{}", encoding="utf-8")
    with pytest.raises(
        InvalidArgumentError, match=r"shots\.json: must contain rules in the format 'vidkin-shot-rules-1'"
    ):
        ShotRules.load(tmp_path)
    for text in ("no", "[" * 100_000):
        (tmp_path / "shots.json").write_text(text, encoding="utf-8")
        with pytest.raises(InvalidArgumentError, match=r"shots\.json: not JSON"):
            ShotRules.load(tmp_path)
    document = {"format": "vidkin-shot-rules-1", "window": 8}
    (tmp_path / "shots.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(InvalidArgumentError, match=r"shots\.json: damaged: KeyError: 'rate'"):
        ShotRules.load(tmp_path)
    rule = FittedRule({"jump": 1.0}, 0.0)
    with pytest.raises(InvalidArgumentError, match="method must be one of"):
        ShotRules(window=4, cut=rule, method="steep")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="window must be at least 2, got 1"):
        ShotRules(window=1, cut=rule)
    with pytest.raises(InvalidArgumentError, match="rate must be above 0, got 0"):
        ShotRules(window=4, cut=rule, rate=0)
    with pytest.raises(InvalidArgumentError, match="one entry per video, got 0 labels for 1 videos"):
        fit_shot_rules([scene(1, 20)], [], mean_direction, window=4)


def test_rules_of_earlier_versions_are_extended(tmp_path: Path) -> None:
    path = fit_rules().save(tmp_path)
    document = json.loads(path.read_text(encoding="utf-8"))
    del document["method"]
    path.write_text(json.dumps(document), encoding="utf-8")
    assert ShotRules.load(tmp_path) == fit_rules()
