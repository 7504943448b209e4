"""Extractors of other packages: entry points in ``vidkin.extractors``."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.videos import encode, pan
from vidkin.errors import ExtractorError, UnknownExtractorError
from vidkin.features import (
    ClassicalExtractor,
    ClipExtractor,
    available_extractors,
    describe_file,
    open_extractor,
)
from vidkin.media import Frames

PLUGIN = """
class Gray:
    name = fingerprint = "grey"
    short_side = 32
    scorer = "copies"
    describes_boxes = False

    def __init__(self, name, weights):
        self.name = name
        self.weights = weights

def opened(name, *, weights, whitening, device):
    return Gray(name, weights)
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with an entry point, on this process's import path."""
    (tmp_path / "grey_extractor.py").write_text(PLUGIN)
    about = tmp_path / "grey_extractor-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: grey-extractor\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[vidkin.extractors]\ngrey = grey_extractor:opened\n")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_installed_plugin_handles_its_prefix(plugin: Path) -> None:
    assert "grey:<name>" in available_extractors()
    extractor = open_extractor("grey:light?x=1", weights="file")
    assert extractor.name == "grey:light?x=1"
    assert extractor.weights == "file"  # type: ignore[attr-defined]
    assert extractor.scorer == "copies"
    assert not isinstance(extractor, ClipExtractor)


def test_plugin_is_found_in_another_process(plugin: Path) -> None:
    code = "from vidkin.features import open_extractor; print(open_extractor('grey:dark').name)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(plugin), "PATH": ""},
    )
    assert done.stdout.strip() == "grey:dark"


def test_trained_models_are_opened_by_a_plugin() -> None:
    plugins = importlib.metadata.entry_points(group="vidkin.extractors", name="model")
    assert [plugin.value for plugin in plugins] == ["vidkin.models.extractor:open_model_extractor"]
    assert "model:<folder>" in available_extractors()


def test_registered_name_takes_precedence_over_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "classical").mkdir()
    (tmp_path / "classical" / "config.toml").write_text("format = 1")
    monkeypatch.chdir(tmp_path)
    assert isinstance(open_extractor("classical"), ClassicalExtractor)
    with pytest.raises(
        UnknownExtractorError,
        match=r"'grey' is not an extractor; choose from classical, classical:<feature>, model:",
    ):
        open_extractor("grey")


def test_classical_name_is_resolved() -> None:
    extractor = open_extractor("classical")
    assert extractor.scorer == "copies"
    assert not isinstance(extractor, ClipExtractor)


def test_extractor_that_returns_no_features_is_named_in_the_error(tmp_path: Path) -> None:
    class Careless:
        name = fingerprint = "careless"
        short_side = 32
        scorer = "copies"
        describes_boxes = False

        def extract(self, frames: Frames, **_: object) -> object:
            return frames.images

    clip = encode(tmp_path / "clip.mp4", pan("coffee", 5, width=48, height=32))
    with pytest.raises(ExtractorError, match="careless: extract must return FrameFeatures, got ndarray"):
        list(describe_file(clip, Careless(), duration=0.5, rate=4))  # type: ignore[arg-type]
