"""The power fails while `vidkin shots -o split=FOLDER` runs: no piece is half, and the same command ends right."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.cli.conftest import run
from tests.support.detections import cut_video
from tests.support.power import PowerCut, PowerCutError, RefusingDisk, count_operations
from vidkin._base import disk
from vidkin._base.files import is_unfinished
from vidkin._base.outputs import LIST_FILE
from vidkin.cli.app import app
from vidkin.media import read_frames

# A film is cut some hundred times.
pytestmark = [pytest.mark.kill, pytest.mark.timeout(300)]

# Frames of each piece: cuts are at 20 and 45 of 60, at key frames.
_PIECES = {"film-001.mp4": 20, "film-002.mp4": 25, "film-003.mp4": 15}
_MODES: dict[str, tuple[str, ...]] = {"exactly": (), "at key frames": ("--copy",)}


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cut_video(tmp_path_factory.mktemp("videos") / "film.mp4")


def words(film: Path, folder: Path, mode: str) -> list[str]:
    pieces, table, edl = folder / "pieces", folder / "shots.csv", folder / "shots.edl"
    options = ["-o", f"split={pieces}", "-o", str(table), "-o", str(edl), *_MODES[mode]]
    return ["shots", "--detector", "shotdetect", str(film), *options]


def left(folder: Path) -> dict[str, int]:
    """Frames of each piece, lines of each list; hidden files are neither."""
    found = sorted(
        path for path in folder.rglob("*") if path.is_file() and path.name != LIST_FILE and not is_unfinished(path.name)
    )
    return {
        path.name: len(read_frames(path, rate=None)) if path.suffix == ".mp4" else len(path.read_text().splitlines())
        for path in found
    }


@pytest.mark.parametrize("names", [False, True], ids=["names kept", "names lost"])
@pytest.mark.parametrize("mode", _MODES)
def test_a_film_is_split_by_the_same_command_after_a_power_cut_at_any_operation(
    film: Path, tmp_path: Path, mode: str, names: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = film.read_bytes()
    (tmp_path / "whole").mkdir()
    operations = count_operations(monkeypatch, lambda: run(*words(film, tmp_path / "whole", mode)))
    whole = left(tmp_path / "whole")
    assert {name: whole[name] for name in _PIECES} == _PIECES
    assert whole["shots.csv"] == 4
    for turn in range(len(operations)):
        power, folder = PowerCut(turn, names), tmp_path / f"{turn}"
        folder.mkdir()
        with monkeypatch.context() as patch:
            patch.setattr(disk, "before", power)
            with pytest.raises(PowerCutError):
                run(*words(film, folder, mode))
        power.lose()
        assert left(folder).items() <= whole.items(), (turn, operations[turn])
        run(*words(film, folder, mode))
        assert left(folder) == whole, (turn, operations[turn])
        shutil.rmtree(folder)
    assert film.read_bytes() == before


@pytest.mark.parametrize("mode", _MODES)
def test_a_disk_that_refuses_any_operation_costs_a_sentence_and_leaves_whole_pieces(
    film: Path, tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "whole").mkdir()
    operations = count_operations(monkeypatch, lambda: run(*words(film, tmp_path / "whole", mode)))
    whole = left(tmp_path / "whole")
    for turn in range(len(operations)):
        folder = tmp_path / f"{turn}"
        folder.mkdir()
        with monkeypatch.context() as patch:
            patch.setattr(disk, "before", RefusingDisk(turn))
            outcome = CliRunner().invoke(app, words(film, folder, mode), catch_exceptions=False)
        assert outcome.exit_code in (1, 3), turn
        assert "No space left on device" in " ".join(outcome.stderr.split()), turn
        assert left(folder).items() <= whole.items(), turn
        run(*words(film, folder, mode))
        assert left(folder) == whole, turn
        shutil.rmtree(folder)
