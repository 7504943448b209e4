"""Encoders on three levels: frames get the level of their content, and each loss learns the order."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch

from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses import quadlet_loss
from vidkin_research.copies.edits import EditedSegment
from vidkin_research.copies.material import CopyMaterial, GalleryVideo
from vidkin_research.copies.recordings import QueryClip, Recording
from vidkin_research.order.encoder import EncoderLoss, Whitening, encode, measure_order, train_encoder, unit_vectors
from vidkin_research.order.frames import FrameSet, gather_frames
from vidkin_research.verifier.pairs import COPY, SCENE, STRANGER
from vidkin_research.verifier.train import tuple_loss


def made_frames(seed: int, *, places: int = 12, moments: int = 4, views: int = 5) -> FrameSet:
    """A few dimensions each encode place and moment; edits perturb other dimensions much more strongly."""
    random = np.random.default_rng(seed)
    rows, shown, where, unedited = [], [], [], []
    for place in range(places):
        of_place = random.standard_normal(8)
        for moment in range(moments):
            of_moment = random.standard_normal(8)
            for view in range(views):
                edit = np.zeros(16) if view == 0 else 3.0 * random.standard_normal(16)
                rows.append(np.concatenate([of_place, of_moment, edit]))
                shown.append(1000 * place + moment)
                where.append(place)
                unedited.append(view == 0)
    features = np.array(rows, np.float32) + 0.1 * random.standard_normal((len(rows), 32)).astype(np.float32)
    return FrameSet(features, np.array(shown), np.array(where), np.array(unedited))


@pytest.mark.parametrize("loss", [loss for loss in get_args(EncoderLoss) if loss != "radial"])
def test_every_loss_learns_invariance_to_edits(loss: EncoderLoss) -> None:
    seen, unseen = made_frames(0), made_frames(1)
    whitening = Whitening(seen.features, 32)
    before = measure_order(unseen, unit_vectors(whitening(unseen.features)))
    after = measure_order(unseen, encode(unseen, whitening, train_encoder(seen, whitening, loss, 0, steps=150)))
    assert after["moment"] > before["moment"] + 0.03
    assert after["quadlets"] > before["quadlets"] + 0.03


def test_training_is_determined_by_its_seed() -> None:
    frames = made_frames(0)
    whitening = Whitening(frames.features, 8)
    one, other, another = (train_encoder(frames, whitening, "quadlet", seed, steps=5) for seed in (0, 0, 1))
    assert torch.equal(one, other)
    assert not torch.equal(one, another)
    with pytest.raises(InvalidArgumentError, match="loss must be one of"):
        train_encoder(frames, whitening, "square", 0)  # type: ignore[arg-type]


def test_whitening_gives_components_of_unit_variance() -> None:
    features = made_frames(2).features
    whitening = Whitening(features, 6)
    components = whitening(features)
    assert np.allclose(np.cov(components.T, bias=True), np.eye(6), atol=1e-3)


def test_indistinguishable_frames_are_ordered_by_chance() -> None:
    frames = made_frames(3)
    figures = measure_order(frames, np.random.default_rng(0).standard_normal((len(frames), 4)).astype(np.float32))
    assert figures["quadlets"] == pytest.approx(1 / 6, abs=0.06)
    assert figures["moment"] < 0.1


def test_frames_have_the_source_times_given_by_the_edit() -> None:
    recording = Recording(Path("a.mp4"), "a", "kitchen", 4.0)
    query = QueryClip("a 0", Path("query.mp4"), recording, 0.0, 4.0)
    # A copy at twice the speed from second 1 of the source to second 4, after half a second of other content.
    copy = GalleryVideo(Path("copy.mp4"), "a", "kitchen", "faster", query, (EditedSegment(1.0, 4.0, 0.5, 2.0),))
    stranger = GalleryVideo(Path("other.mp4"), "b", "street", "distractor")
    counts = {"query.mp4": 8, "copy.mp4": 5, "other.mp4": 2}

    def features(paths: list[Path]) -> list[np.ndarray]:
        return [np.arange(counts[path.name], dtype=np.float32)[:, None] for path in paths]

    frames = gather_frames(CopyMaterial((query,), (copy, stranger)), features, 2.0)
    shown = list(zip(frames.features[:, 0].tolist(), frames.moments.tolist(), frames.places.tolist(), strict=True))
    # The query at whole seconds; the copy at 0.5, 1 and 1.5 s shows seconds 1, 2 and 3; all others are unrelated
    # moments.
    assert shown[:4] == [(0, 0, 0), (2, 1, 0), (4, 2, 0), (6, 3, 0)]
    assert shown[4:7] == [(1, 1, 0), (2, 2, 0), (3, 3, 0)]
    assert shown[7:] == [(0, 1000, 1), (1, 1001, 1)]
    _, _, levels = frames.relevance()
    assert levels[1].tolist() == [2, 1, 1, 0, 0]


def test_verifier_tuples_have_the_requested_distances_on_a_line() -> None:
    scores = torch.tensor([[0.9, 0.4, -0.2, 0.1]], requires_grad=True)
    kinds = torch.tensor([[COPY, SCENE, STRANGER, STRANGER]])
    members = [torch.tensor([[value]] * 2) for value in (0.0, 0.1, 0.6)]
    negative = torch.tensor([[1.2], [0.9]])
    assert torch.isclose(tuple_loss(scores, kinds, "quadlet"), quadlet_loss(*members, negative))
    # If a level is missing, there are no tuples to learn from.
    empty = tuple_loss(scores, torch.full_like(kinds, COPY), "triplet")
    assert empty.item() == 0
    empty.backward()
