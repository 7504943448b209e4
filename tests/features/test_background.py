"""The photographs included in the package, and the default extractors without torch."""

from __future__ import annotations

import subprocess
import sys
from importlib.resources import files

import numpy as np
import pytest

from vidkin._base.install import install_command
from vidkin.features import background_frames
from vidkin.features.background import PHOTOGRAPHS, open_photograph


@pytest.mark.large
def test_background_has_six_crops_of_sixteen_photographs() -> None:
    frames = background_frames()
    assert frames.images.shape == (96, 240, 320, 3)
    assert frames.images.dtype == np.uint8
    assert len(PHOTOGRAPHS) == 16
    assert frames.images.std(axis=(1, 2, 3)).min() > 3
    gray = np.ptp(frames.images.astype(int), axis=3).max(axis=(1, 2)) == 0
    assert gray.sum() == 8 * 6


def test_shipped_background_is_small_and_redistributable() -> None:
    folder = files("vidkin.features") / "data" / "background"
    terms = (folder / "LICENSES.txt").read_text(encoding="utf-8")
    lines = [line.split()[0] for line in terms.splitlines() if line[:1].isalpha() and len(line.split()) > 1]
    assert set(PHOTOGRAPHS) <= set(lines)
    pictures = [file for file in folder.iterdir() if file.name.endswith(".jpg")]
    assert {file.name for file in pictures} == {f"{name}.jpg" for name in PHOTOGRAPHS}
    assert sum(len(file.read_bytes()) for file in pictures) < 1.4e6
    for name in PHOTOGRAPHS:
        assert open_photograph(name).mode == "RGB"


_ALONE = """
import sys


class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "torchvision", "timm", "scipy", "sklearn", "skimage", "pywt"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Refuse())
from vidkin.errors import MissingPartError
from vidkin.features import Whitening, background_frames, fit_edit_whitening, fit_whitening, open_extractor

frames = background_frames()[::8]
extractor = open_extractor("classical")
assert extractor.extract(frames).values.shape == (12, 1, 10, 128)
fit_whitening(extractor, [frames], dimension=4).save(sys.argv[1])
assert Whitening.load(sys.argv[1]).dimension == 4
fit_edit_whitening(extractor, frames.images[:4], dimension=4)
import vidkin.features.onnx
for name in ("timm:resnet50", "torchvision:resnet18"):
    try:
        open_extractor(name)
    except MissingPartError as error:
        print(error)
"""


@pytest.mark.thorough
def test_default_extractors_work_without_torch(tmp_path_factory: pytest.TempPathFactory) -> None:
    output = tmp_path_factory.mktemp("alone") / "own.safetensors"
    run = subprocess.run([sys.executable, "-c", _ALONE, output], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    sentence = f"torch is not installed; install it with: {install_command('train')}"
    assert run.stdout.splitlines() == [sentence, sentence]
