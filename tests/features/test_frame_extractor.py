"""The default extractor: the shipped encoder over views of frames."""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

from tests.support.videos import photograph
from vidkin.errors import InvalidArgumentError, UnknownExtractorError
from vidkin.features import GRID
from vidkin.features.frame_encoder import (
    FrameEncoder,
    FrameEncoderSettings,
    load_frame_encoder,
    save_frame_encoder,
)
from vidkin.features.frame_extractor import FrameEncoderExtractor, open_frame_extractor
from vidkin.media import Frames

BOXES = torch.tensor(GRID)


@pytest.fixture(scope="module")
def extractor() -> FrameEncoderExtractor:
    return open_frame_extractor("vidkin", device="cpu")


def frames_of(*images: NDArray[np.uint8]) -> Frames:
    return Frames(np.stack(images), np.arange(len(images), dtype=np.float64))


def test_every_view_is_a_unit_vector(extractor: FrameEncoderExtractor) -> None:
    features = extractor.extract(frames_of(photograph("coffee"), photograph("coffee")), boxes=BOXES)
    assert features.values.shape == (2, len(GRID), 1, 128)
    torch.testing.assert_close(features.values.norm(dim=-1), torch.ones(2, len(GRID), 1))
    assert features.fingerprint == extractor.fingerprint
    assert extractor.extract(frames_of(photograph("coffee"))).values.shape == (1, 1, 1, 128)


def test_a_frame_is_described_the_same_in_any_batch(extractor: FrameEncoderExtractor) -> None:
    images = [np.roll(photograph("chelsea"), 20 * step, axis=1) for step in range(5)]
    together = extractor.extract(frames_of(*images), boxes=BOXES).values
    alone = torch.cat([extractor.extract(frames_of(image), boxes=BOXES).values for image in images])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=0)


def test_a_view_is_what_a_crop_shows(extractor: FrameEncoderExtractor) -> None:
    image = photograph("astronaut")
    half = np.ascontiguousarray(image[:, : image.shape[1] // 2])
    views = extractor.extract(frames_of(image), boxes=torch.tensor([[0, 0, 1, 1], [0, 0, 0.5, 1]])).values[0, :, 0]
    cropped = extractor.extract(frames_of(half)).values[0, 0, 0]
    other = extractor.extract(frames_of(photograph("coffee"))).values[0, 0, 0]
    assert float(views[1] @ cropped) > 0.95
    assert float(views[1] @ cropped) > float(views[0] @ cropped)
    assert float(views[1] @ other) < 0.5


def test_black_bars_change_nothing_much(extractor: FrameEncoderExtractor) -> None:
    image = photograph("chelsea")
    boxed = np.pad(image, ((40, 40), (0, 0), (0, 0)))
    plain, barred = (extractor.extract(frames_of(picture)).values[0, 0, 0] for picture in (image, boxed))
    assert float(plain @ barred) > 0.97


def test_mirror_is_that_of_flipped_frames(extractor: FrameEncoderExtractor) -> None:
    image = photograph("coffee")
    flipped = np.ascontiguousarray(image[:, ::-1])
    torch.testing.assert_close(
        extractor.extract(frames_of(image), mirror=True).values, extractor.extract(frames_of(flipped)).values
    )


def test_names_and_files(tmp_path: Path) -> None:
    with pytest.raises(UnknownExtractorError, match="takes no model, got 'vidkin:x'"):
        open_frame_extractor("vidkin:x")
    with pytest.raises(InvalidArgumentError, match="takes no whitening, got 'w'"):
        open_frame_extractor("vidkin", whitening="w")
    with pytest.raises(InvalidArgumentError, match="views must be one of none, query, both, got 'all'"):
        open_frame_extractor("vidkin?views=all")
    with pytest.raises(InvalidArgumentError, match="must be the weights of a frame encoder"):
        open_frame_extractor("vidkin", weights=tmp_path / "none.safetensors")
    small = FrameEncoder(FrameEncoderSettings(widths=(4, 8), strides=(2,), dimension=16, side=32))
    path = tmp_path / "small.safetensors"
    metadata = {"settings": json.dumps(small.settings.to_table())}
    save_file(small.state_dict(), path, metadata=metadata)
    assert load_frame_encoder(path).settings == small.settings
    opened = open_frame_extractor("vidkin", weights=path)
    assert opened.extract(frames_of(photograph("coffee"))).values.shape == (1, 1, 1, 16)
    default, alone = open_frame_extractor("vidkin"), open_frame_extractor("vidkin?views=query")
    assert (default.views, alone.views, alone.name) == ("both", "query", "vidkin?views=query")
    assert len({extractor.fingerprint for extractor in (opened, default, alone)}) == 3
    state = small.state_dict()
    state["head.bias"] = torch.full_like(state["head.bias"], float("nan"))
    save_file(state, path, metadata=metadata)
    with pytest.raises(InvalidArgumentError, match="must hold finite weights, got NaN or infinity"):
        load_frame_encoder(path)
    save_file(small.state_dict(), path)
    with pytest.raises(InvalidArgumentError, match="its metadata has no settings"):
        load_frame_encoder(path)


class TestSave:
    def test_what_is_written_is_the_same_encoder(self, tmp_path: Path) -> None:
        settings = FrameEncoderSettings(
            side=16, widths=(4, 8), strides=(2,), grid=2, dimension=8, normalization="fixed"
        )
        encoder = FrameEncoder(settings)
        path = save_frame_encoder(encoder, tmp_path / "own.safetensors")
        again = load_frame_encoder(path)
        assert again.settings == settings
        assert FrameEncoderExtractor(again).fingerprint == FrameEncoderExtractor(encoder).fingerprint

    def test_a_folder_that_is_missing_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidArgumentError, match=r"own.safetensors: .*; choose a file in a folder"):
            save_frame_encoder(load_frame_encoder(), tmp_path / "missing" / "own.safetensors")


def test_the_shipped_weights_are_small_and_tell_where_they_come_from() -> None:
    folder = Path(str(files("vidkin.features"))) / "data"
    weights = (folder / "frame_encoder.safetensors").read_bytes()
    told = json.loads((folder / "frame_encoder.json").read_text(encoding="utf-8"))
    assert len(weights) <= 4_000_000
    assert told["sha256"] == hashlib.sha256(weights).hexdigest()
    assert told["pictures"] == sum(told["data"].values())
    assert {"licenses", "versions", "made_by"} <= set(told)
