"""File names of figures, and writing them."""

from __future__ import annotations

from pathlib import Path

import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.rendering.pictures import new_figure, require_picture_name, set_text, short_name, write_figure


def test_invalid_image_names_are_refused_with_the_accepted_formats(tmp_path: Path) -> None:
    require_picture_name(tmp_path / "map.PNG")
    with pytest.raises(InvalidArgumentError, match=r"map\.doc: not an image format; choose .*\.png"):
        require_picture_name(tmp_path / "map.doc")
    with pytest.raises(InvalidArgumentError, match="none: no such folder; create it first"):
        require_picture_name(tmp_path / "none" / "map.png")


@pytest.mark.parametrize(
    ("name", "room", "short"),
    [
        ("clip.mp4", 40, "clip.mp4"),
        ("0123456789.mp4", 10, "012345….mp4"[:6] + "…mp4"),
        ("a" * 41, 100, "a" * 24 + "…" + "a" * 15),
        ("/folder/of/clip.mp4", 40, "clip.mp4"),
    ],
)
def test_long_names_keep_both_ends(name: str, room: int, short: str) -> None:
    shown = short_name(name, room=room)
    assert shown == short
    assert len(shown) <= min(room, 40)


def test_figure_is_written_completely_and_dollar_signs_are_literal(tmp_path: Path) -> None:
    figure = new_figure(2.0, 1.0, dpi=50)
    axes = figure.add_subplot()
    set_text(axes.set_title("", size=6), r"$not_a{formula$ 山")
    write_figure(figure, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    write_figure(figure, tmp_path / "a.svg")
    assert "<svg" in (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "a.svg"]


def test_matplotlib_errors_become_invalid_argument_errors(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"a\.xyz: cannot be written"):
        write_figure(new_figure(1.0, 1.0), tmp_path / "a.xyz")
    assert list(tmp_path.iterdir()) == []
