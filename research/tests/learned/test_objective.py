"""Training on labeled shots: sampling, inputs of each loss, and learning what is critical."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from vidkin.errors import InvalidArgumentError, TrainingError
from vidkin.metric.losses import quadlet_loss, radial_loss, triplet_loss
from vidkin.shots import ShotAnnotation, VideoAnnotation
from vidkin_research.learned.clips import ShotBatch, ShotClips
from vidkin_research.learned.objective import SHOT_LOSSES, ShotLoss, ShotObjective, ShotRecipe, train_on_shots


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """A second thread only slows down steps of this size."""
    torch.set_num_threads(1)


LABELS = VideoAnnotation(
    Path("a.mp4"), 10.0, (ShotAnnotation(0, 12, (8, 12)), ShotAnnotation(12, 20), ShotAnnotation(20, 30))
)


class Head(nn.Module):
    """The smallest clip encoder: a linear layer on the mean of a clip."""

    def __init__(self, size: int = 6, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.linear = nn.Linear(size, 4)

    def head(self, features: Tensor, lengths: Tensor | None = None) -> Tensor:
        return nn.functional.normalize(self.linear(features.mean(dim=1)), dim=1)


def number_features(frames: int = 30) -> Tensor:
    """Set every feature of a frame to its index."""
    return torch.arange(frames, dtype=torch.float32)[:, None].expand(-1, 6).contiguous()


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_quadlets_and_triplets_are_sampled_from_the_expected_frames() -> None:
    batch = ShotClips([number_features()], [LABELS], window=4).draw(quadlets=50, triplets=50, generator=generator())
    assert batch.quadlets is not None
    assert batch.triplets is not None
    assert batch.quadlets.shape == (4, 50, 4, 6)
    assert batch.triplets.shape == (3, 50, 4, 6)
    query, positive, intermediate, negative = batch.quadlets[..., 0]
    assert query.max() < 8
    assert positive.max() < 8
    assert torch.equal(intermediate, torch.tensor([8.0, 9, 10, 11]).expand(50, 4))
    assert negative.min() >= 12
    assert negative.max() < 20
    assert not bool((query == positive).all(dim=1).any())
    # The last shot has no next one and the first is critical, so triplets start from the second.
    assert batch.triplets[0, ..., 0].min() >= 12
    assert batch.triplets[0, ..., 0].max() < 20
    assert batch.triplets[2, ..., 0].min() >= 20


def test_triplets_can_ignore_critical_labels() -> None:
    clips = ShotClips([number_features()], [LABELS], window=4)
    batch = clips.draw(quadlets=0, triplets=200, generator=generator(), critical_triplets=True)
    assert batch.quadlets is None
    assert batch.triplets is not None
    assert 8 in batch.triplets[0, ..., 0]
    assert clips.has_critical


def test_short_clips_are_padded_with_their_first_frame() -> None:
    clips = ShotClips([number_features()], [LABELS], window=6, minimum=3)
    batch = clips.draw(quadlets=20, triplets=0, generator=generator())
    assert batch.quadlets is not None
    assert batch.quadlets[2, 0, :, 0].tolist() == [8.0, 8.0, 8.0, 9.0, 10.0, 11.0]


@pytest.mark.parametrize("loss", SHOT_LOSSES)
def test_objective_is_the_sum_of_the_published_terms(loss: ShotLoss) -> None:
    model = Head()
    torch.manual_seed(1)
    quadlets, triplets = torch.randn(4, 5, 3, 6), torch.randn(3, 7, 3, 6)
    terms = ShotObjective(loss=loss)(model, ShotBatch(quadlets, triplets))
    e = [model.head(part) for part in quadlets]
    expected = {
        "triplet": 0.0,
        "quadlet": quadlet_loss(*e, g1=0.7, g2=0.3, g3=0.5),
        "radial": radial_loss(*e, c=3, margin=0.3),
        "radial_detached": radial_loss(*e, c=3, margin=0.3, detach_radius=True),
    }[loss]
    ordinary = triplet_loss(*[model.head(part) for part in triplets], margin=0.7)
    assert terms["loss"].item() == pytest.approx((expected + ordinary).item(), rel=1e-5)
    assert set(terms) == {"loss", "triplets"} | ({"quadlets"} if loss != "triplet" else set())


def events(videos: int, seed: int) -> tuple[list[Tensor], list[VideoAnnotation]]:
    """Places differ in features 0-2, events in feature 3, and irrelevant disturbances in feature 4."""
    source = generator(seed)
    features, labels = [], []
    for number in range(videos):
        rows, shots = [], []
        for shot in range(6):
            part = 0.1 * torch.randn(24, 6, generator=source)
            part[:, :3] += torch.randn(3, generator=source) * 2
            critical = shot % 2 == 0
            part[16:, 3 if critical else 4] += 3.0
            rows.append(part)
            at = 24 * shot
            shots.append(ShotAnnotation(at, at + 24, (at + 16, at + 24) if critical else None))
        features.append(torch.cat(rows))
        labels.append(VideoAnnotation(Path(f"{number}.mp4"), 10.0, tuple(shots)))
    return features, labels


def test_quadlets_teach_relevant_changes() -> None:
    features, labels = events(6, seed=3)
    model = Head(seed=2)
    clips = ShotClips(features, labels, window=4)
    recipe = ShotRecipe(loss="quadlet", window=4, steps=120, learning_rate=0.02)
    seen: list[int] = []
    report = train_on_shots(model, clips, recipe, on_progress=lambda step, terms: seen.append(step))
    assert seen == list(range(1, 121))
    assert sum(report.losses[-20:]) < 0.5 * sum(report.losses[:20])
    assert not report.collapsed
    assert 0.3 < report.distance <= 2.0
    others, other_labels = events(3, seed=99)
    rises: dict[bool, list[float]] = {True: [], False: []}
    with torch.no_grad():
        for rows, label in zip(others, other_labels, strict=True):
            for shot in label.shots:
                ends = model.head(torch.stack([rows[shot.start : shot.start + 4], rows[shot.end - 4 : shot.end]]))
                rises[shot.critical is not None].append(float((ends[0] - ends[1]).norm()))
    assert min(rises[True]) > max(rises[False])


def test_same_recipe_gives_the_same_weights() -> None:
    features, labels = events(2, seed=3)
    clips = ShotClips(features, labels, window=4)
    models = [Head(), Head()]
    for model in models:
        train_on_shots(model, clips, ShotRecipe(loss="radial_detached", window=4, steps=5))
    assert torch.equal(models[0].linear.weight, models[1].linear.weight)
    assert not torch.equal(models[0].linear.weight, Head().linear.weight)


def test_report_marks_a_collapsed_training_run() -> None:
    features, labels = events(2, seed=3)
    model = Head()
    with torch.no_grad():
        model.linear.weight.zero_()
    clips = ShotClips(features, labels, window=4)
    report = train_on_shots(model, clips, ShotRecipe(loss="quadlet", window=4, steps=0))
    assert report.collapsed
    assert report.distance < 1e-3


def test_non_finite_loss_aborts_training() -> None:
    features, labels = events(2, seed=3)
    clips = ShotClips([rows * math.nan for rows in features], labels, window=4)
    with pytest.raises(TrainingError, match=r"step 1: the loss is nan .* reduce the learning rate"):
        train_on_shots(Head(), clips, ShotRecipe(loss="quadlet", window=4, steps=5))


def test_invalid_arguments_are_rejected_with_the_accepted_values() -> None:
    with pytest.raises(InvalidArgumentError, match="one entry per video and at least one, got 0 for 1 videos"):
        ShotClips([number_features()], [], window=4)
    with pytest.raises(InvalidArgumentError, match=r"a\.mp4: .* ends at frame 30, but the video has 29 frames"):
        ShotClips([number_features(29)], [LABELS], window=4)
    with pytest.raises(
        InvalidArgumentError,
        match=r"loss must be one of 'triplet', 'quadlet', .* got 'circle'",
    ):
        ShotObjective(loss="circle")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="tuples that the loss 'triplet' can use, got none"):
        ShotObjective(loss="triplet")(Head(), ShotBatch(torch.zeros(4, 1, 2, 6), None))
    clips = ShotClips([number_features()], [LABELS], window=4)
    with pytest.raises(InvalidArgumentError, match="clips and recipe must have the same window, got 4 and 10"):
        train_on_shots(Head(), clips, ShotRecipe(loss="quadlet"))
    plain = VideoAnnotation(Path("a.mp4"), 10.0, (ShotAnnotation(0, 12), ShotAnnotation(12, 30)))
    with pytest.raises(InvalidArgumentError, match="labels must have critical shots for the loss 'radial', got none"):
        train_on_shots(Head(), ShotClips([number_features()], [plain], window=4), ShotRecipe(loss="radial", window=4))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"steps": 5}, "must set loss to one of triplet, quadlet, radial, radial_detached"),
        ({"loss": "quadlet", "lr": 1}, r"\[shots\] has no setting lr; choose from loss, window"),
        ({"loss": "quadlet", "steps": 2.5}, r"shots\.steps must be a whole number, got 2\.5"),
        ({"loss": "quadlet", "clip": True}, "shots.clip must be a number, got True"),
        (
            {"loss": "quadlet", "window": 1},
            "window must be at least 2, and .* at least 0, got 1, 250, 16 and 16",
        ),
        (
            {"loss": "quadlet", "quadlets": 0, "triplets": 0},
            "quadlets or triplets must be at least 1, got 0 of both",
        ),
        ({"loss": "quadlet", "learning_rate": 0}, "learning_rate and clip must be above 0"),
        ({"loss": "quadlet", "learning_rate": math.inf}, "and these and margin finite, got"),
        ({"loss": "quadlet", "margin": math.nan}, "and these and margin finite, got"),
    ],
)
def test_recipes_are_validated(values: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        ShotRecipe.from_mapping(values)
    assert ShotRecipe.from_mapping({"loss": "radial", "steps": 3}).steps == 3
