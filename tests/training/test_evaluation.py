"""Evaluation: hand-computed results, data splits, and images of quadlets."""

from __future__ import annotations

import math
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import Tensor

from tests.support.training import recipe_for, write_pictures
from vidkin.datasets import LabelledSet, open_labelled, read_split
from vidkin.errors import InvalidArgumentError, UnknownExtractorError
from vidkin.models import load_model
from vidkin.rendering import draw_quadlets
from vidkin.training import embed_set, evaluate, measure_embeddings, measure_one, open_evaluation_set, train

# Angles on a circle: two categories with two subcategories of two items each.
LABELS = torch.tensor([[0, 0], [0, 0], [0, 1], [0, 1], [1, 2], [1, 2], [1, 3], [1, 3]])
IN_ORDER = [0, 5, 30, 35, 150, 155, 180, 185]


def on_circle(degrees: list[float] | list[int]) -> Tensor:
    angles = torch.deg2rad(torch.tensor(degrees, dtype=torch.float32))
    return torch.stack([angles.cos(), angles.sin()], dim=1)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, LabelledSet]:
    root = tmp_path_factory.mktemp("trained")
    source = write_pictures(root / "pictures")
    recipe = recipe_for(source, model={"trainable": "head"}, schedule={"steps": 3})
    train(recipe, output=root / "model")
    return root / "model", read_split(open_labelled(source), root / "model" / "split.json")


class TestMeasures:
    def test_of_perfectly_ordered_embeddings_are_one(self) -> None:
        vectors = on_circle(IN_ORDER)
        figures = measure_embeddings(vectors, LABELS, vectors, LABELS)
        for name in ("qp", "qp_sampled", "tp", "tp_sampled", "ndcg", "map", "map_subcategory"):
            assert figures[name] == pytest.approx(1.0), name
        for name in ("hap", "asi", "recall_at_1", "r_precision"):
            assert figures[name] == pytest.approx(1.0), name
        # 8 queries x 1 positive x 2 intermediates x 4 negatives.
        assert figures["quadlets"] == 64

    def test_query_quadlets_come_from_the_queries(self) -> None:
        # Items 1 and 2 are swapped, so each of the items 0 to 3 has a positive farther away than an intermediate.
        vectors = on_circle([0, 30, 5, 35, 150, 155, 180, 185])
        figures = measure_embeddings(vectors, LABELS, on_circle(IN_ORDER), LABELS)
        # Item 0: i at 5 is closer than p at 30, i at 35 is not, so 4 of 8 quadlets are in order. Items 1 (p 30 away, i
        # 25 and 5) and 2: none. Item 3 (p 30 away, i 35 and 5): 4. All quadlets of the other four items: 32.
        assert figures["qp"] == pytest.approx((4 + 0 + 0 + 4 + 32) / 64)
        assert figures["tp"] == pytest.approx(1.0)
        assert measure_one("qp", vectors, LABELS, vectors, LABELS) == figures["qp"]
        assert measure_one("map", vectors, LABELS, on_circle(IN_ORDER), LABELS) == figures["map"]
        assert figures["recall_at_1"] == pytest.approx(0.75)

    def test_gallery_quadlets_take_p_i_and_n_from_the_gallery(self) -> None:
        # The query is at 0, in the gallery p at 40, i at 30 and 50, n at 60, so only (p, i at 50, n) is in order.
        labels = torch.tensor([[0, 0], [0, 1], [0, 1], [1, 2]])
        figures = measure_embeddings(on_circle([0]), torch.tensor([[0, 0]]), on_circle([40, 30, 50, 60]), labels)
        assert figures["qp_gallery"] == 0.5
        assert figures["tp_gallery"] == 1.0
        assert math.isnan(figures["qp"])
        # If queries are also the gallery, both protocols are the same.
        vectors = on_circle(IN_ORDER)
        both = measure_embeddings(vectors, LABELS, None, None)
        assert (both["qp_gallery"], both["tp_gallery"]) == (both["qp"], both["tp"])

    def test_without_a_gallery_no_item_ranks_itself(self) -> None:
        vectors = on_circle([0, 90, 1, 91, 180, 270, 181, 271])
        figures = measure_embeddings(vectors, LABELS, None, None)
        assert figures["recall_at_1"] == 0.0

    def test_split_without_quadlets_gives_nan_but_has_ranking_measures(self) -> None:
        vectors = on_circle(IN_ORDER)
        queries = torch.tensor([0, 2])
        figures = measure_embeddings(vectors[queries], LABELS[queries], vectors, LABELS)
        assert math.isnan(figures["qp"])
        assert figures["quadlets"] == 0
        assert figures["map"] == pytest.approx(1.0)


class TestEvaluate:
    def test_accepts_a_folder_or_a_model_and_uses_cached_features(self, trained: tuple[Path, LabelledSet]) -> None:
        folder, labelled = trained
        told: list[tuple[int, int]] = []
        evaluation = evaluate(folder, labelled, on_item=lambda done, total: told.append((done, total)))
        assert (evaluation.queries, evaluation.gallery, evaluation.query_split) == (12, 24, "test")
        # 12 queries with a positive, 2 intermediates and 8 negatives each.
        assert evaluation.quadlets == 12 * 2 * 8
        assert told == [*((done, 36) for done in range(1, 13)), (36, 36)]
        assert evaluate(load_model(folder), labelled) == evaluation
        assert evaluation.broken == ()

    def test_data_is_split_as_in_training_and_defaults_to_the_data_of_the_recipe(
        self, trained: tuple[Path, LabelledSet]
    ) -> None:
        folder, labelled = trained
        expected = evaluate(folder, labelled)
        assert evaluate(folder, labelled.root) == expected
        assert evaluate(str(folder)) == expected
        assert open_evaluation_set(folder).split_counts() == labelled.split_counts()

    def test_other_data_is_split_by_item_names_or_newly(
        self, trained: tuple[Path, LabelledSet], tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        folder, labelled = trained
        moved = tmp_path / labelled.root.name
        shutil.copytree(labelled.root, moved)
        opened = open_evaluation_set(folder, moved, options={"kind": "image"})
        assert opened.split_counts() == labelled.split_counts()
        assert "using the split in" in caplog.text
        other = write_pictures(tmp_path / "other", each=3)
        assert set(open_evaluation_set(folder, other).split_counts()) == {"train", "test"}
        assert "the data has no split; splitting it by group" in caplog.text
        given = open_evaluation_set(folder, moved, split=folder / "split.json")
        assert given.split_counts() == labelled.split_counts()

    def test_one_group_per_subcategory_is_split_by_item(
        self, trained: tuple[Path, LabelledSet], tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        folder, _ = trained
        other = write_pictures(tmp_path / "other", each=4, seed=2)
        for shade in other.glob("*/*"):
            (shade / "session").mkdir()
            for path in shade.glob("*.png"):
                path.rename(shade / "session" / path.name)
        evaluation = evaluate(folder, other)
        assert (evaluation.queries, evaluation.gallery) == (6, 18)
        assert "splitting it by item" in caplog.text
        assert evaluation.missing["qp"] == "no quadlets among the 6 test items: no subcategory has two items"
        assert math.isnan(evaluation.qp)
        assert not math.isnan(evaluation.map)

    def test_primary_measure_is_named(self, trained: tuple[Path, LabelledSet]) -> None:
        folder, labelled = trained
        evaluation = evaluate(folder, labelled)
        assert (evaluation.primary, evaluation.value) == ("qp", evaluation.qp)
        without = replace(evaluation, qp=math.nan)
        assert (without.primary, without.value) == ("map", evaluation.map)

    def test_in_memory_model_needs_a_labeled_set(self, trained: tuple[Path, LabelledSet]) -> None:
        folder, _ = trained
        with pytest.raises(InvalidArgumentError, match="data must be a labeled dataset if the model is not a folder"):
            evaluate(load_model(folder), "pictures")
        (folder / "recipe.toml").rename(folder / "kept.toml")
        try:
            with pytest.raises(InvalidArgumentError, match=r"has no recipe.toml with labeled data"):
                evaluate(folder)
        finally:
            (folder / "kept.toml").rename(folder / "recipe.toml")

    def test_evaluating_an_empty_split_names_the_splits_of_the_data(self, trained: tuple[Path, LabelledSet]) -> None:
        folder, labelled = trained
        train_only = labelled.with_items(item for item in labelled.items if item.split == "train")
        with pytest.raises(InvalidArgumentError, match=r"has no test items, only: train 24; .*--queries"):
            evaluate(folder, train_only)

    def test_split_can_be_evaluated_against_itself(self, trained: tuple[Path, LabelledSet]) -> None:
        folder, labelled = trained
        evaluation = evaluate(folder, labelled, query_split="train", gallery_split="train")
        assert (evaluation.queries, evaluation.gallery) == (24, 24)

    def test_seed_changes_only_the_sampled_measures(self, trained: tuple[Path, LabelledSet]) -> None:
        folder, labelled = trained
        first, second = (evaluate(folder, labelled, samples=200, seed=seed) for seed in (0, 1))
        assert first.qp_sampled != second.qp_sampled
        assert replace(second, qp_sampled=first.qp_sampled, tp_sampled=first.tp_sampled) == first

    def test_unknown_splits_and_missing_models_are_rejected(self, trained: tuple[Path, LabelledSet]) -> None:
        folder, labelled = trained
        with pytest.raises(
            InvalidArgumentError,
            match=r"split must be one of train, validation, test, or '' \(undecided\), got 'exam'",
        ):
            evaluate(folder, labelled, query_split="exam")
        with pytest.raises(UnknownExtractorError, match="contains no model"):
            evaluate(folder.parent, labelled)

    def test_embeddings_of_a_set_are_unit_vectors(self, trained: tuple[Path, LabelledSet]) -> None:
        folder, labelled = trained
        vectors, made = embed_set(load_model(folder), labelled.part("test"))
        assert vectors.shape == (12, 16)
        assert torch.allclose(vectors.norm(dim=1), torch.ones(12), atol=1e-5)
        assert len(made) == 12


class TestPicture:
    @pytest.mark.large
    def test_has_a_row_per_quadlet_framed_according_to_its_order(
        self, trained: tuple[Path, LabelledSet], tmp_path: Path
    ) -> None:
        folder, labelled = trained
        share = draw_quadlets(load_model(folder), labelled.part("test"), tmp_path / "q.png", count=4)
        with Image.open(tmp_path / "q.png") as picture:
            assert picture.width == 700
            colors = {color for _, color in picture.convert("RGB").getcolors(1 << 24) or []}
        green, red = (44, 160, 44), (214, 39, 40)
        assert (green in colors) == (share > 0)
        assert (red in colors) == (share < 1)
        assert share in (0, 0.25, 0.5, 0.75, 1)

    @pytest.mark.large
    def test_names_both_labels_in_any_script(self, trained: tuple[Path, LabelledSet], tmp_path: Path) -> None:
        folder, labelled = trained
        # All categories have subcategories with the same names.
        draw_quadlets(load_model(folder), labelled.part("test"), tmp_path / "q.svg", count=4)
        told = set(re.findall(r"<!-- (\w+) / (\w+)", (tmp_path / "q.svg").read_text(encoding="utf-8")))
        assert len({category for category, _ in told}) > 1
        assert {name for _, name in told} == {"dark", "light"}
        renamed = labelled.with_items(replace(item, category=f"{item.category} 日本") for item in labelled.items)
        strange = replace(renamed, names=None).part("test")
        draw_quadlets(load_model(folder), strange, tmp_path / "strange.png", count=4)
        assert (tmp_path / "strange.png").is_file()

    def test_images_of_quadlets_need_a_valid_path(self, trained: tuple[Path, LabelledSet], tmp_path: Path) -> None:
        folder, labelled = trained
        with pytest.raises(InvalidArgumentError, match="none: no such folder; create it first"):
            draw_quadlets(load_model(folder), labelled.part("test"), tmp_path / "none" / "q.png")
        with pytest.raises(InvalidArgumentError, match=r"q\.what: not an image format"):
            draw_quadlets(load_model(folder), labelled.part("test"), tmp_path / "q.what")
