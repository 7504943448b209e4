"""The map of an index: similar videos are close to each other, and groups of them form clusters."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.web.synthetic import fill
from vidkin.errors import InvalidArgumentError, MissingPartError
from vidkin.index import CollectionMap, Index, map_collection, map_shots
from vidkin.index.overview import cluster_vectors, describe_spans, lay_out, place_neighbors, principal_components
from vidkin.similarity import FrameFeatures


def test_first_principal_component_has_the_largest_variance() -> None:
    """Along (3, 4) / 5 the vectors are at -5, 0 and 5, with no variance in other directions."""
    vectors = np.array([[-3.0, -4.0], [0.0, 0.0], [3.0, 4.0]]) + 7
    assert principal_components(vectors, 2) == pytest.approx(np.array([[-5, 0], [0, 0], [5, 0]]), abs=1e-9)


def test_clusters_are_ordered_by_size() -> None:
    draw = np.random.default_rng(3)
    places = np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]])
    sizes = (4, 10, 4)
    vectors = np.concatenate([place + draw.normal(size=(size, 2)) for place, size in zip(places, sizes, strict=True)])
    clusters, centers = cluster_vectors(vectors)
    assert len(centers) == 3  # the square root of 18 / 2
    assert clusters[4:14].tolist() == [0] * 10
    assert {len(set(part.tolist())) for part in (clusters[:4], clusters[14:])} == {1}
    assert centers[0] == pytest.approx([50, 0], abs=2)


def test_points_fill_a_square_and_central_videos_are_listed() -> None:
    vectors = np.zeros((8, 8), dtype=np.float32)
    vectors[:, 0] = [0, 1, 2, 3, 4, 20, 21, 22]
    made = lay_out(np.arange(11, 19), vectors, method="pca")
    assert made.method == "pca"
    assert made.points[:, 0] == pytest.approx(vectors[:, 0] / 22)
    assert made.points[:, 1] == pytest.approx([0.5] * 8)
    # sqrt(8 / 2) = 2 clusters, of five and three videos; the central video of each comes first.
    assert made.clusters.tolist() == [0] * 5 + [1] * 3
    assert (made.central[0][0], made.central[1][0]) == (2, 6)


def test_index_without_videos_or_with_equal_ones_has_a_map(tmp_path: Path) -> None:
    assert len(lay_out(np.zeros(0, np.int64), np.zeros((0, 1), np.float32)).videos) == 0
    same = lay_out(np.arange(20), np.ones((20, 3), np.float32), method="pca")
    assert same.points == pytest.approx(np.full((20, 2), 0.5))
    assert same.central[0][:2] == (0, 1)
    fill(tmp_path / "i.vidkin", 70)
    steps: list[tuple[int, int]] = []
    with Index.open(tmp_path / "i.vidkin", read_only=True) as index:
        made = map_collection(index, method="pca", on_progress=lambda done, total: steps.append((done, total)))
        again = map_collection(index, method="pca")
    assert steps == [(32, 70), (64, 70), (70, 70)]
    assert (made.points == again.points).all()
    assert made.to_dict()["method"] == "pca"


def test_umap_is_used_if_installed_and_required_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    class Umap:
        def __init__(self, **settings: object) -> None:
            asked.update(settings)

        def fit_transform(self, vectors: np.ndarray) -> np.ndarray:
            return vectors[:, :2] * [1.0, 0.0]

    umap = ModuleType("umap")
    umap.UMAP = Umap  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "umap", umap)
    vectors = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)
    made = lay_out(np.arange(12), vectors, method="umap")
    assert (made.method, asked["n_neighbors"], asked["random_state"]) == ("umap", 11, 0)
    assert made.points[:, 1] == pytest.approx([0.5] * 12)
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(MissingPartError, match=r"\[map\]"):
        lay_out(np.arange(12), vectors, method="umap")


def test_inconsistent_arguments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"points must be \[2, 2\] and clusters \[2\] for 2 videos"):
        CollectionMap("pca", np.arange(2), np.zeros((3, 2), np.float32), np.zeros(2, np.int64), ())
    empty = Index.open(tmp_path / "i", extractor="classical", create=True)
    with empty, pytest.raises(InvalidArgumentError, match="'tsne', 'pacmap', 'umap', got 'isomap'"):
        map_collection(empty, method="isomap")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match=r"spans must be \[1, 2\] for 1 shots, got \[2, 2\]"):
        CollectionMap(
            "pca", np.arange(1), np.zeros((1, 2), np.float32), np.zeros(1, np.int64), (), spans=np.zeros((2, 2))
        )
    message = "a shot must start at 0 or later and end after it, got 3 to 3"
    with Index.open(tmp_path / "i") as empty, pytest.raises(InvalidArgumentError, match=message):
        map_shots(empty, {1: [(3, 3)]})


def test_shot_is_the_mean_of_its_frames_or_the_frame_nearest_to_its_center() -> None:
    """Frames at 0, 1, 2 and 3 s have the values 0, 2, 10 and 30; the last one has no information."""
    values = np.zeros((4, 1, 1, 1), np.float32)
    values[:, 0, 0, 0] = [0, 2, 10, 30]
    features = FrameFeatures(values, np.arange(4.0), np.array([1, 1, 1, 0], np.float32))
    rows = describe_spans(features, [(0, 2), (2, 2.5), (2, 4), (0.7, 0.9)])
    assert rows[:, 0] == pytest.approx([1, 10, 10, 2], abs=1e-3)


def test_too_many_shots_are_sampled_reproducibly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vidkin.index.overview._MAX_SHOTS", 20)
    fill(tmp_path / "i.vidkin", 40)
    with Index.open(tmp_path / "i.vidkin", read_only=True) as index:
        shots = {record.id: [(0.0, 1.0)] for record in index.videos()} | {99: [(0.0, 1.0)]}
        one, other = (map_shots(index, shots, method="pca") for _ in range(2))
    assert (len(one.videos), one.total) == (20, 40)
    assert one.spans is not None
    assert one.spans.tolist() == [[0, 1]] * 20
    assert one.videos.tolist() == other.videos.tolist() == sorted(one.videos.tolist())


@pytest.mark.slow  # numba takes a minute to compile
@pytest.mark.parametrize("method", ["umap", "pacmap"])
def test_optional_packages_separate_clusters_and_are_reproducible(method: Any) -> None:
    pytest.importorskip(method)
    check_clusters_are_apart(method)


def test_built_in_method_preserves_neighbors(monkeypatch: pytest.MonkeyPatch) -> None:
    check_clusters_are_apart("tsne")
    monkeypatch.setattr("vidkin.index.overview.find_spec", lambda _: None)
    # With twelve groups in as many directions, a linear projection to two dimensions overlaps several of them.
    draw = np.random.default_rng(1)
    vectors = (0.5 * draw.normal(size=(96, 16)) + 8 * np.eye(16)[np.arange(96) // 8]).astype(np.float32)

    def share_of_neighbors(made: Any) -> float:
        away = np.linalg.norm(made.points[:, None] - made.points[None], axis=-1) + 9 * np.eye(96)
        return float((np.argsort(away, axis=1)[:, :3] // 8 == (np.arange(96) // 8)[:, None]).mean())

    automatic = lay_out(np.arange(96), vectors)
    assert automatic.method == "tsne"
    assert share_of_neighbors(automatic) > 0.95
    assert share_of_neighbors(lay_out(np.arange(96), vectors, method="pca")) < 0.8
    assert lay_out(np.arange(9), vectors[:9]).method == "pca"


def test_points_beyond_the_landmarks_are_placed_near_their_nearest_landmarks() -> None:
    draw = np.random.default_rng(2)
    group = np.arange(200) % 4
    vectors = draw.normal(size=(200, 8)) + 20 * np.eye(8)[group]
    points = place_neighbors(vectors, landmarks=60)
    middles = np.array([points[group == number].mean(0) for number in range(4)])
    away = np.linalg.norm(points[:, None] - middles[None], axis=-1)
    assert (away.argmin(1) == group).all()


def check_clusters_are_apart(method: Any) -> None:
    """Check that three groups of forty vectors are separated on the map, and that a second map is identical."""
    draw = np.random.default_rng(0)
    vectors = np.concatenate([draw.normal(size=(40, 16)) + 20 * np.eye(16)[k] for k in range(3)]).astype(np.float32)
    made, again = (lay_out(np.arange(120), vectors, method=method) for _ in range(2))
    assert made.method == method
    assert made.points == pytest.approx(again.points)
    middles = [made.points[40 * k : 40 * k + 40].mean(0) for k in range(3)]
    widths = [np.linalg.norm(made.points[40 * k : 40 * k + 40] - middles[k], axis=1).mean() for k in range(3)]
    apart = min(np.linalg.norm(middles[one] - middles[other]) for one, other in ((0, 1), (0, 2), (1, 2)))
    assert apart > 2 * max(widths)
