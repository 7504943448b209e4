"""Detection with both published classifiers of DeepSBD, from a single training run."""

from __future__ import annotations

import itertools
from pathlib import Path

import torch

from tests.support.videos import encode, pan
from vidkin_research.learned.judging import BoundaryLabels
from vidkin_research.shots.detectors import train_and_detect_segments
from vidkin_research.shots.material import LabelledVideo


def test_network_detects_cuts_with_softmax_and_with_an_svm(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    frames = itertools.chain(pan("coffee", 40, width=48, height=32), pan("rocket", 40, width=48, height=32))
    path = encode(tmp_path / "two.mp4", frames, rate=25)
    video = LabelledVideo(path, BoundaryLabels(hard=(40,)))
    softmax, svm = train_and_detect_segments([video], [video], size=16, width=0.125, steps=12, seed=0)
    assert set(softmax.cuts) == set(svm.cuts) == {path}
    # The network has hardly learned anything, but a linear SVM on its hidden layer separates the segments at a cut.
    assert [cut.frame for cut in svm.cuts[path] if cut.kind == "hard"] == [40]
    assert svm.training["right"] > 0.9
    assert softmax.training["seconds"] == svm.training["seconds"]
