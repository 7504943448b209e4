"""Classical features as extractors, from the name to a search in an index."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from research.tests.features.pictures import photographs, plain

import vidkin
from vidkin.errors import InvalidArgumentError, UnknownExtractorError
from vidkin.features import available_extractors, open_extractor
from vidkin.media import Frames
from vidkin_research.features import ImageFeature, ImageFeatureExtractor, save_feature


def frames_of(*pictures: np.ndarray) -> Frames:
    return Frames(np.stack(pictures), np.arange(len(pictures), dtype=np.float64))


def test_frames_become_unit_vectors(feature: ImageFeature) -> None:
    extractor = ImageFeatureExtractor(feature)
    assert extractor.name == f"classical:{feature.name}"
    pictures = photographs(8)[::4]
    features = extractor.extract(frames_of(*pictures))
    assert features.whole.shape[:2] == (2, 1)
    np.testing.assert_allclose(np.linalg.norm(features.whole, axis=-1), np.ones((2, 1)), rtol=1e-5)
    assert features.fingerprint == extractor.fingerprint


def test_extractor_can_be_opened_by_name_settings_or_file(features: dict[str, ImageFeature], tmp_path: Path) -> None:
    assert "classical:<feature>" in available_extractors()
    plain_color, hsv = open_extractor("classical:color"), open_extractor("classical:color?space=hsv")
    assert plain_color.name == "classical:color"
    assert hsv.name == "classical:color?space=hsv"
    assert plain_color.fingerprint != hsv.fingerprint
    save_feature(features["fisher"], tmp_path / "own.safetensors")
    own = open_extractor("classical:fisher", weights=tmp_path / "own.safetensors")
    assert own.fingerprint != open_extractor("classical:fisher").fingerprint
    # A name without a colon keeps its meaning.
    assert open_extractor("classical").fingerprint.startswith("classical-1-")


def test_unknown_features_and_settings_are_rejected() -> None:
    with pytest.raises(UnknownExtractorError, match="'sift' is not a classical feature; choose from wavelet"):
        open_extractor("classical:sift")
    with pytest.raises(InvalidArgumentError, match=r"'classical\?space=hsv' has no setting 'space'"):
        open_extractor("classical?space=hsv")
    with pytest.raises(InvalidArgumentError, match="'classical:hog' takes no whitening"):
        open_extractor("classical:hog", whitening="w.safetensors")


@pytest.mark.parametrize("name", ["wavelet", "fisher"])
def test_search_finds_the_same_scene(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "photographs"
    folder.mkdir()
    every = photographs(48)
    for number in range(0, 48, 6):
        Image.fromarray(every[number]).save(folder / f"{number}.png")
    Image.fromarray(plain()).save(folder / "plain.png")
    query = tmp_path / "query.jpg"
    # Reduced and compressed as JPEG.
    Image.fromarray(every[18]).resize((160, 120)).save(query, quality=40)
    index = vidkin.Index.open(tmp_path / "index", extractor=f"classical:{name}", create=True)
    report = index.add([folder], images=True)
    assert len(report.added) == 9
    matches = index.search(query, limit=3)
    assert Path(matches[0].path).name == "18.png"
    assert matches[0].score > matches[1].score
