"""Training a classifier with an embedding head on one level of labels, classification of files, and evaluation."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from tests.support.colors import COLORS, color_recipe, write_colors
from vidkin.datasets import open_labelled
from vidkin.errors import InvalidArgumentError
from vidkin.index import Index
from vidkin.media import write_video
from vidkin.models import EncoderConfig, HeadOutputs, TwoHeadNetwork, build_model, load_model, save_model
from vidkin.rendering import draw_classifier
from vidkin.training import (
    DescribedParts,
    TrainingItems,
    classify,
    describe_splits,
    evaluate_classifier,
    load_recipe,
    nearest,
    train,
)
from vidkin.training.classifier import NEIGHBORS_FILE


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_colors(tmp_path_factory.mktemp("colors"))


@pytest.fixture(scope="module")
def model(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "colors"
    report = train(color_recipe(data), output=folder)
    assert set(report.terms) >= {"classification", "semi_hard", "accuracy", "distance"}
    return folder


def test_files_are_classified_with_their_neighbors(data: Path, model: Path) -> None:
    files = [data / "test" / label / "0.png" for label in COLORS]
    (model.parent / "broken.png").write_bytes(b"no picture")
    done, broken = classify(model, [*files, model.parent / "broken.png"], classes=2, neighbors=3)
    assert [entry.label for entry in done] == list(COLORS)
    assert [Path(error.path).name for error in broken] == ["broken.png"]
    for entry, label in zip(done, COLORS, strict=True):
        assert 1 / 3 < entry.probability <= 1
        assert len(entry.others) == 1
        assert entry.probability >= entry.others[0][1]
        assert [found.label for found in entry.neighbors] == [label] * 3
        assert all(found.path.startswith(f"train/{label}/") for found in entry.neighbors)
        distances = [found.distance for found in entry.neighbors]
        assert distances == sorted(distances)
        assert 0 <= distances[0] <= 4
    assert json.loads(json.dumps(done[0].to_dict()))["neighbors"][0]["label"] == "blue"


def test_images_are_listed_as_broken_for_a_motion_model(data: Path, tmp_path: Path) -> None:
    config = EncoderConfig(
        kind="two_head", backbone="small", size=32, classes=2, motion="differences", frames=6, rate=3.0
    )
    network = build_model(config)
    save_model(network, tmp_path / "model", class_names=["still", "moving"])
    save_file(
        {"embeddings": torch.eye(2, network.dimension), "labels": torch.arange(2)},
        tmp_path / "model" / NEIGHBORS_FILE,
        {"keys": json.dumps(["a.mp4", "b.mp4"])},
    )
    video = tmp_path / "gray.mp4"
    write_video(video, np.full((24, 32, 32, 3), 128, np.uint8), rate=8)
    done, broken = classify(tmp_path / "model", [data / "test" / "red" / "0.png", video])
    assert [entry.path for entry in done] == [video]
    assert [error.cause for error in broken] == ["is an image, but the model classifies motion; use a video"]


def test_training_items_are_stored_with_the_model(data: Path, model: Path) -> None:
    known = TrainingItems.load(model)
    assert (known.embeddings.shape, len(known.keys)) == ((24, 8), 24)
    assert torch.bincount(known.labels).tolist() == [8, 8, 8]
    (model.parent / "empty").mkdir()
    with pytest.raises(InvalidArgumentError, match=r"neighbors\.safetensors: cannot be read"):
        TrainingItems.load(model.parent / "empty")


@pytest.mark.large
def test_model_can_index_and_search(data: Path, model: Path, tmp_path: Path) -> None:
    with Index.open(tmp_path / "index", extractor=str(model), create=True) as index:
        report = index.add([data / "train"], images=True)
        assert len(report.added) == 24
        matches = index.search(data / "test" / "green" / "1.png", limit=4)
    assert {Path(match.path).parent.name for match in matches} == {"green"}


def test_trained_model_can_be_evaluated(data: Path, model: Path, tmp_path: Path) -> None:
    network = load_model(model)
    assert isinstance(network, TwoHeadNetwork)
    parts = describe_splits(network, open_labelled(data, reader="classes"))
    evaluation = evaluate_classifier(parts)
    assert (evaluation.items, evaluation.top_1, evaluation.macro, evaluation.wrong) == (12, 1.0, 1.0, 0)
    assert evaluation.per_class == dict.fromkeys(COLORS, (4, 1.0))
    assert evaluation.embedding.recalls[1] == evaluation.embedding.nearest_label == 1.0
    assert evaluation.embedding.nmi == pytest.approx(1.0)
    assert evaluation.to_dict()["explained"] is None
    paths = draw_classifier(parts, tmp_path)
    assert [path.name for path in paths] == ["retrieval.png", "misclassified.png", "embedding.png"]
    for path in (paths[0], paths[2]):
        with Image.open(path) as picture:
            assert min(picture.size) > 300
    with Image.open(paths[1]) as picture:
        # Without wrong items, a single row says so.
        assert picture.size == (900, 180)
        assert picture.convert("L").getextrema()[0] < 100


def test_f1_and_judgment_match_hand_computed_values(data: Path, model: Path) -> None:
    """Four test items on a line with classes 0, 0, 1, 1; the last one is predicted as 0, the class of its neighbor."""
    network = load_model(model)
    assert isinstance(network, TwoHeadNetwork)
    whole = open_labelled(data, reader="classes")
    chosen = {f"test/{label}/{number}.png" for label in ("blue", "green") for number in (0, 1)}
    chosen |= {"train/blue/0.png", "train/green/0.png"}
    items = [item for item in whole.items if item.key(whole.root) in chosen]
    parts = describe_splits(network, whole.with_items(items))

    def outputs(places: list[float], logits: list[list[float]]) -> HeadOutputs:
        points = torch.tensor(places)[:, None] * torch.tensor([[1.0, 0.0]])
        return HeadOutputs(torch.tensor(logits), points, points + 10)

    blue, green = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]
    test = outputs([0.0, 0.1, 1.0, 0.2], [blue, blue, green, blue])
    evaluation = evaluate_classifier(DescribedParts(parts.test, parts.train, test, outputs([0.0, 1.0], [blue, green])))
    assert (evaluation.top_1, evaluation.macro, evaluation.wrong, evaluation.explained) == (
        0.75,
        0.75,
        1,
        1.0,
    )
    assert evaluation.per_class == {"blue": (2, 1.0), "green": (2, 0.5)}
    # Nearest other items: 0 -> 0.1, 0.1 -> 0 or 0.2, 1 -> 0.2, 0.2 -> 0.1, correct for the first and the third.
    assert evaluation.embedding.recalls[1] in (0.5, 0.75)
    assert evaluation.embedding.recalls[4] == 1.0
    assert evaluation.embedding.nearest_label == 0.75


def test_neighbors_are_ordered_by_distance() -> None:
    distances, places = nearest(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 0.0], [1.0, 0.0]]), 5)
    assert (distances.tolist(), places.tolist()) == ([[1.0, 9.0]], [[1, 0]])


@pytest.mark.thorough
@pytest.mark.parametrize("loss", ["batch_hard", "center", "triplet_center", "magnet", "mined_triplet"])
def test_training_with_every_metric_loss_resumes_bit_for_bit(data: Path, tmp_path: Path, loss: str) -> None:
    settings = color_recipe(data, loss, steps=6, checkpoint_every=1)
    train(settings, output=tmp_path / "whole")
    interrupted = 0

    class StopError(Exception):
        pass

    def stop(progress: object) -> None:
        nonlocal interrupted
        interrupted += getattr(progress, "phase", "") == "training"
        if interrupted == 4:
            raise StopError

    with pytest.raises(StopError):
        train(settings, output=tmp_path / "parts", on_progress=stop)
    report = train(settings, output=tmp_path / "parts")
    assert report.resumed_from == 3
    whole, parts = (load_model(tmp_path / name).state_dict() for name in ("whole", "parts"))
    for name, tensor in whole.items():
        assert torch.equal(tensor, parts[name]), name


def test_validation_can_measure_accuracy(data: Path, tmp_path: Path) -> None:
    settings = color_recipe(data, steps=4)
    settings["data"] = {"source": str(data / "train"), "reader": "classes", "test": 0.25, "validation": 0.25}
    settings["validation"] = {"every": 2}
    report = train(settings, output=tmp_path / "model")
    assert report.measure == "accuracy"
    assert report.best is not None
    assert 0 <= report.best <= 1


def test_invalid_recipes_are_rejected(data: Path, model: Path, tmp_path: Path) -> None:
    alone = color_recipe(data)
    alone["objective"] = [{"name": "semi_hard"}]
    with pytest.raises(InvalidArgumentError, match="two_head' requires the objective 'classification'"):
        load_recipe(alone)
    with pytest.raises(InvalidArgumentError, match="quadlets require labels with two levels"):
        train(color_recipe(data, "quadlet"), output=tmp_path / "quadlets")
    with pytest.raises(InvalidArgumentError, match="at most 3 classes, the number of classes with 2 items, got 4"):
        train(color_recipe(data, batch=[4, 2]), output=tmp_path / "wide")
    for name in ("two-head", "published-two-head"):
        assert load_recipe(name).config().kind == "two_head"
