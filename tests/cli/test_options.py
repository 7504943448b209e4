"""How values on the command line are read."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from tests.cli.conftest import run
from tests.support.detections import cut_video
from vidkin.cli.options import check_stretch, parse_moment
from vidkin.errors import InvalidArgumentError
from vidkin.features import has_cuda


@pytest.mark.parametrize(
    ("start", "end", "given"),
    [
        ("0:04", "0:02", "--start 0:04 and --end 0:02"),
        ("4", "0:04.0", "--start 4 and --end 0:04.0"),
        ("100f", "50f", "--start 100f and --end 50f"),
        (None, "0:00", "--end 0:00"),
    ],
)
def test_an_end_before_its_start_is_refused_with_both_as_typed(start: str | None, end: str, given: str) -> None:
    with pytest.raises(InvalidArgumentError, match=rf"^--end must be after --start, got {given}$"):
        check_stretch(start, end)


def test_a_time_and_a_frame_are_compared_once_the_video_is_known(tmp_path: Path) -> None:
    film = cut_video(tmp_path / "film.mp4", rate=10)
    check_stretch("20f", "0:03")
    check_stretch("20f", "0:03", film)  # frame 20 is at 2 s
    check_stretch("40f", "0:03")
    with pytest.raises(InvalidArgumentError, match=r"got --start 40f and --end 0:03$"):
        check_stretch("40f", "0:03", film)


@pytest.mark.parametrize("text", ["0", "90", "90.5", "1:30", "1:30.5", "1:02:03", "250f"])
def test_a_moment_stays_as_typed(text: str) -> None:
    assert parse_moment(f" {text}") == text


@pytest.mark.parametrize("text", ["", "soon", "-1", "1:75", "1.5:30", "1:2:3:4", "nan", "inf", "1:nan", "1:-5"])
def test_anything_else_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"invalid time .*; use seconds \(90\.5\), M:SS"):
        parse_moment(text)


def test_a_device_that_is_not_there_ends_the_command_before_it_works(tmp_path: Path) -> None:
    words = {
        "index": ["."],
        "search": ["clip.mp4"],
        "match": ["a.mp4", "b.mp4"],
        "open": ["clip.mp4"],
        "duplicates": [],
        "recurring": [],
        "shots": ["film.mp4"],
        "embed": ["clip.mp4", "-o", "features.npz"],
        "whiten": [".", "-o", "whitening.safetensors"],
        "serve": [],
    }
    for command, others in words.items():
        told = run(command, *others, "--device", "gpu", status=2).err
        assert "device must be auto, cpu, cuda or cuda:N, got 'gpu'" in told, command
    if not has_cuda():
        told = run("search", "clip.mp4", "--device", "cuda", status=2).err
        assert "device 'cuda' needs CUDA, which the installed onnxruntime lacks" in " ".join(told.split())
