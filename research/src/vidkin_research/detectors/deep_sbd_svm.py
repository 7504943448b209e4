"""The SVM variant of DeepSBD: a linear SVM on the last hidden layer replaces the network's own classifier."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from vidkin._base.registry import import_part
from vidkin.models import DeepSBDNetwork
from vidkin_research.detectors.deep_sbd_rules import CLASSES
from vidkin_research.detectors.deep_sbd_training import LabeledFrames, segments_by_class

__all__ = ["fit_svm"]

_BATCH = 16
# Bias of a class without training segments, which never wins.
_NEVER = -1e3


def fit_svm(
    network: DeepSBDNetwork,
    videos: Sequence[LabeledFrames],
    *,
    segments: int = 600,
    strength: float = 1.0,
    seed: int = 0,
) -> float:
    """Replace the classifier of a trained network by a linear SVM on its second fully connected layer.

    One SVM for each class against the others, classes weighted evenly. Its weights become those of the network's last
    layer, so that the model is stored and used like any other: the class is the one with the largest margin, and the
    softmax of the margins stands for probabilities.

    Args:
        network: A trained network in eval mode. Its last layer is replaced.
        videos: Videos as in `train_on_segments`.
        segments: Maximum number of segments of each class.
        strength: The constant C of the SVM.
        seed: Seed of the choice of segments.

    Returns:
        Share of these segments that the SVM classifies correctly, in [0, 1].

    Raises:
        InvalidArgumentError: There are no segments without a cut, or none with one.
    """
    support_vectors = import_part("sklearn.svm", extra="train")
    random = np.random.default_rng(seed)
    features: list[NDArray[np.float32]] = []
    labels: list[int] = []
    frames = network.config.frames
    for label, places in enumerate(segments_by_class(videos, frames)):
        chosen = random.permutation(len(places))[:segments]
        labels += [label] * len(chosen)
        for first in range(0, len(chosen), _BATCH):
            part = [places[place] for place in chosen[first : first + _BATCH]]
            images = np.stack([videos[video].images[start : start + frames] for video, start in part])
            volumes = torch.from_numpy(images).permute(0, 4, 1, 2, 3).float() / 255
            with torch.inference_mode():
                features.append(network.hidden_features(volumes).float().numpy())
    rows = np.concatenate(features)
    # On a common scale the solver converges; the primal solver always does.
    mean, scale = rows.mean(axis=0), rows.std(axis=0)
    scale[scale == 0] = 1.0
    machine = support_vectors.LinearSVC(
        C=strength, class_weight="balanced", dual=False, random_state=seed, max_iter=5000
    )
    machine.fit((rows - mean) / scale, labels)
    weights = machine.coef_ / scale
    biases = machine.intercept_ - weights @ mean
    if len(machine.classes_) == 2:  # one machine tells both
        weights, biases = np.concatenate([-weights, weights]), np.concatenate([-biases, biases])
    layer = network.classifier
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.fill_(_NEVER)
        for row, label in enumerate(machine.classes_.tolist()):
            layer.weight[label] = torch.from_numpy(weights[row])
            layer.bias[label] = float(biases[row])
        logits = layer(torch.from_numpy(rows))
    network.class_names = CLASSES
    return float((logits.argmax(dim=1).numpy() == np.array(labels)).mean())
