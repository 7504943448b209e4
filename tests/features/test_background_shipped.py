"""The background that ships with the package is what the extractors make of the photographs."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import skimage
from PIL import Image

from vidkin.features import background, open_extractor
from vidkin.index import Calibration

# Files of scikit-image with names of their own.
ORIGINALS = {"hubble": "hubble_deep_field", "motorcycle": "motorcycle_left"}


def open_original(name: str) -> Image.Image:
    """A photograph as a file of scikit-image."""
    (path,) = Path(skimage.__file__).with_name("data").glob(f"{ORIGINALS.get(name, name)}.*")
    return Image.open(path).convert("RGB")


@pytest.fixture
def originals(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The photographs as they come with scikit-image, which the descriptors that ship are of."""
    monkeypatch.setattr(background, "open_photograph", open_original)
    background.background_frames.cache_clear()
    yield
    background.background_frames.cache_clear()


@pytest.mark.usefixtures("originals")
@pytest.mark.parametrize("name", ["vidkin", "vidkin?views=none", "classical"])
def test_shipped_background_matches_the_extractors(name: str) -> None:
    extractor = open_extractor(name)
    assert (files("vidkin.index.storage") / "data" / f"{extractor.fingerprint}.safetensors").is_file()
    shipped, measured = Calibration.of_extractor(extractor), Calibration.measure(extractor)
    # Processors round differently; the values are cosines.
    np.testing.assert_allclose(shipped.background, measured.background, atol=5e-3, rtol=0)
