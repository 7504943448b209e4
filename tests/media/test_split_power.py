"""After a power failure during splitting, pieces are complete or absent, and the same call can be repeated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tests.support.folders import made_in
from tests.support.power import PowerCut, PowerCutError, RefusingDisk, count_operations
from tests.support.videos import encode_with_sound
from vidkin._base import disk
from vidkin._base.files import is_unfinished
from vidkin.errors import MediaError
from vidkin.media import read_frames, split_exactly, split_video

# Each test splits the film some hundred times.
pytestmark = [pytest.mark.kill, pytest.mark.timeout(300)]

Split = Callable[[Path, Path], object]


class Stretch(NamedTuple):
    """A segment of a film with ten frames per second."""

    start_frame: int
    end_frame: int

    @property
    def start(self) -> float:
        return self.start_frame / 10

    @property
    def end(self) -> float:
        return self.end_frame / 10


def at_keys(source: Path, folder: Path) -> object:
    return split_video(source, folder, [0.0, 1.0, 2.0], names=["a", "b", "c"])


def exactly(source: Path, folder: Path) -> object:
    spans = [Stretch(0, 7), Stretch(7, 22), Stretch(22, 30)]
    return split_exactly(source, folder, spans, times=np.arange(30) / 10, names=["a", "b", "c"])


# Number of frames per piece; there is a key frame every ten frames.
SPLITS = {at_keys: [10, 10, 10], exactly: [7, 15, 8]}


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    options = {"g": "10", "sc_threshold": "0", "preset": "ultrafast", "bf": "0"}
    return encode_with_sound(tmp_path_factory.mktemp("film") / "film.mp4", 30, options)


def frames(folder: Path) -> dict[str, int]:
    """Number of frames of each piece; hidden files are not pieces."""
    return {path.stem: len(read_frames(path, rate=None)) for path in made_in(folder) if not is_unfinished(path.name)}


@pytest.mark.parametrize("names", [False, True], ids=["names kept", "names lost"])
@pytest.mark.parametrize("split", SPLITS, ids=lambda split: split.__name__)
def test_a_video_is_split_after_a_power_failure_at_any_operation(
    film: Path, tmp_path: Path, split: Split, names: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = dict(zip("abc", SPLITS[split], strict=True))
    before = film.read_bytes()
    operations = count_operations(monkeypatch, lambda: split(film, tmp_path / "whole"))
    assert frames(tmp_path / "whole") == whole
    assert operations.count("create") == operations.count("rename") == 3
    for turn in range(len(operations)):
        power, folder = PowerCut(turn, names), tmp_path / f"{turn}"
        with monkeypatch.context() as patch:
            patch.setattr(disk, "before", power)
            with pytest.raises(PowerCutError):
                split(film, folder)
        power.lose()
        left = frames(folder)
        assert left.items() <= whole.items(), turn
        split(film, folder)
        assert frames(folder) == whole, turn
    assert film.read_bytes() == before


@pytest.mark.parametrize("split", SPLITS, ids=lambda split: split.__name__)
def test_a_failing_disk_leaves_complete_pieces_and_is_reported(
    film: Path, tmp_path: Path, split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = dict(zip("abc", SPLITS[split], strict=True))
    for turn in range(len(count_operations(monkeypatch, lambda: split(film, tmp_path / "whole")))):
        folder = tmp_path / f"{turn}"
        with monkeypatch.context() as patch:
            patch.setattr(disk, "before", RefusingDisk(turn))
            with pytest.raises(MediaError, match="No space left on device"):
                split(film, folder)
        assert frames(folder).items() <= whole.items(), turn
        assert not any(is_unfinished(path.name) for path in folder.iterdir())
