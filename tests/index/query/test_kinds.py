"""An index built with a trained model ranks by kind."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.index.helpers import video
from tests.support.kinds import Kinds, make_kinds
from vidkin.errors import CollectionError, CollectionMismatchError, UnknownExtractorError
from vidkin.index import Index, SerialExecutor, WorkerSpec, compare
from vidkin.models import EncoderConfig, build_model, save_model

pytestmark = pytest.mark.large


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Kinds:
    return make_kinds(tmp_path_factory.mktemp("kinds"))


@pytest.fixture(scope="module")
def collection(kinds: Kinds, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The gallery, indexed by worker processes, which load the model from its folder."""
    folder = tmp_path_factory.mktemp("collection") / "c.vidkin"
    with Index.open(folder, extractor=str(kinds.model), create=True) as index:
        report = index.add(kinds.gallery, workers=2)
        assert len(report.added) == 8
    return folder


def test_identical_video_ranks_first_then_the_same_kind_then_the_rest(kinds: Kinds, collection: Path) -> None:
    with Index.open(collection) as index:
        for query in sorted(kinds.queries.rglob("*.mp4")):
            matches = index.search(query)
            assert [kinds.relevance(query, match.path) for match in matches] == [2, 2, 1, 1, 0, 0, 0, 0]
            assert all(0 < match.score <= 1 for match in matches)
            assert all(match.segments == () for match in matches)


def test_scores_equal_similarities_of_the_embeddings(kinds: Kinds, collection: Path) -> None:
    query = next(kinds.queries.rglob("*.mp4"))
    with Index.open(collection) as index:
        found = {match.path: match.score for match in index.search(query)}
        target, score = next(iter(found.items()))
        first, second = (_embedding(index, path) for path in (query, Path(target)))
        distance = float(np.square(first - second).sum())
        assert score == pytest.approx(1 - distance / 4, abs=1e-3)  # stored in half precision
        for match in (index.match(query, target), compare(query, target, extractor=str(kinds.model))):
            assert match.measure == "kinds"
            assert match.score == pytest.approx(score, abs=1e-3)
            assert match.map.shape == (1, 1)


def _embedding(index: Index, path: Path) -> NDArray[np.floating]:
    from vidkin.features import describe_file
    from vidkin.media import probe

    extractor = index.extractor
    features = next(describe_file(path, extractor, duration=probe(path).duration, rate=1.0))
    return features.whole[0, 0]


def test_indexed_file_finds_itself_first(kinds: Kinds, collection: Path) -> None:
    path = next(kinds.gallery.rglob("*.mp4"))
    with Index.open(collection) as index:
        best = index.search(path)[0]
        assert (best.path, best.score) == (str(path), 1.0)
        assert index.match(path, path).score == pytest.approx(1.0, abs=1e-3)


def test_manifest_names_the_model_of_the_index(kinds: Kinds, collection: Path) -> None:
    table = json.loads((collection / "collection.json").read_text())
    assert table["measure"] == "kinds"
    assert table["extractor"] == f"model:{kinds.model}"
    assert table["fingerprint"].startswith("model-clip-")
    with Index.open(collection) as index:
        assert index.manifest.measure == "kinds"
        assert index.recall(queries=2).recall == 1.0
        with pytest.raises(
            CollectionMismatchError,
            match="whose scores rank videos by kind and cannot identify copies",
        ):
            index.duplicates()


def test_index_of_kinds_has_no_background_calibration(collection: Path) -> None:
    with Index.open(collection) as index:
        features = index.store.read(index.videos()[0].id)
        assert features.baselines.tolist() == [[0.0]]


def test_path_of_a_moved_model_can_be_given_again(kinds: Kinds, collection: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(collection, tmp_path / "c.vidkin")
    moved = shutil.copytree(kinds.model, tmp_path / "moved")
    manifest = json.loads((copy / "collection.json").read_text())
    manifest["extractor"] = "model:/nowhere/model"
    (copy / "collection.json").write_text(json.dumps(manifest))
    query = next(kinds.queries.rglob("*.mp4"))
    with (
        Index.open(copy) as index,
        pytest.raises(
            UnknownExtractorError,
            match=r"model: contains no model, because config\.toml cannot be read \(no such file or directory\);",
        ),
    ):
        index.search(query)
    with Index.open(copy, extractor=str(moved)) as index:
        assert len(index.search(query)) == 8
    other = save_model(
        build_model(EncoderConfig(kind="clip", size=32, width=0.5, hidden=16, lstm=8, frames=4), seed=5),
        tmp_path / "other",
    )
    with pytest.raises(CollectionMismatchError, match="was created with extractor model-clip-"):
        Index.open(copy, extractor=str(other))


def test_relative_model_folder_is_found_from_any_working_directory(
    kinds: Kinds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(kinds.model.parent)
    with Index.open(tmp_path / "c.vidkin", extractor="model", create=True) as index:
        assert index.manifest.extractor == f"model:{kinds.model}"
    monkeypatch.chdir(tmp_path)
    with Index.open("c.vidkin") as index:
        assert index.extractor.fingerprint == index.manifest.fingerprint


def test_model_with_a_rate_finds_a_moment_in_a_long_video(kinds: Kinds, tmp_path: Path) -> None:
    """With clips of 0.8 s, a clip from the middle of a long video scores as high as the video itself."""
    model = save_model(
        build_model(EncoderConfig(kind="clip", size=32, width=0.5, hidden=16, lstm=8, frames=4, rate=5.0)),
        tmp_path / "model",
    )
    long = video(tmp_path / "videos" / "long.mp4", seed=1, frames=100)
    video(tmp_path / "videos" / "other.mp4", seed=3, frames=100)
    with Index.open(tmp_path / "c.vidkin", extractor=str(model), create=True) as index:
        spec = WorkerSpec(index.manifest.extractor)
        index.add(tmp_path / "videos", executor=SerialExecutor(spec))
        assert [record.frames for record in index.videos()] == [20, 20]  # one clip per second for 20 s
        best = index.search(long, start=8.0, end=8.8)[0]
        assert best.path == str(long)
        assert best.score == pytest.approx(1.0, abs=2e-3)


def test_old_manifest_defaults_to_copies_and_an_unknown_scorer_is_damage(collection: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(collection, tmp_path / "c.vidkin")
    manifest = json.loads((copy / "collection.json").read_text())
    del manifest["measure"]
    (copy / "collection.json").write_text(json.dumps(manifest))
    with Index.open(copy) as index:
        assert index.manifest.measure == "copies"
    manifest["measure"] = "moods"
    (copy / "collection.json").write_text(json.dumps(manifest))
    with pytest.raises(CollectionError, match=r"collection.json is damaged \(measure is 'moods'\)"):
        Index.open(copy)
