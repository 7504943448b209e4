"""Images of comparisons, checked by their pixels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support.detections import detection
from tests.support.folders import made_in
from tests.support.videos import encode
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.index import Comparison
from vidkin.rendering import draw_curve, frame_pairs, pool_map
from vidkin.rendering.pictures import draw_map, draw_pairs, require_picture_name
from vidkin.similarity import Segment


def comparison(rows: int, columns: int, *segments: Segment) -> Comparison:
    values = np.zeros((rows, columns), np.float32)
    for step in range(min(rows, columns)):
        values[step, step] = 1.0
    return Comparison(
        0.8,
        segments,
        values,
        np.arange(rows, dtype=np.float64),
        np.arange(columns, dtype=np.float64),
    )


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB")).astype(int)


def orange(image: np.ndarray) -> np.ndarray:
    """Pixels with the color of segments (#ff7f0e), as [K, 2] rows and columns."""
    return np.argwhere(np.abs(image - np.array([255, 127, 14])).sum(-1) < 12)


def test_segment_is_drawn_downward_and_to_the_right(tmp_path: Path) -> None:
    target = tmp_path / "map.png"
    draw_map(comparison(10, 20, Segment(0, 10, 0, 10, 0.9)), target, query="q.mp4", target="t.mp4")
    share = orange(pixels(target))
    assert len(share) > 100
    top, bottom = share[share[:, 0].argmin()], share[share[:, 0].argmax()]
    assert bottom[0] - top[0] > 50
    assert bottom[1] - top[1] > 100
    assert made_in(tmp_path) == [target]


def test_map_without_segments_has_no_lines(tmp_path: Path) -> None:
    draw_map(comparison(4, 6), tmp_path / "map.png", query="q.mp4", target="t.mp4")
    assert len(orange(pixels(tmp_path / "map.png"))) == 0


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (2500, 30)])
def test_maps_of_any_size_can_be_drawn(tmp_path: Path, shape: tuple[int, int]) -> None:
    name = "price $5 山 $6.mp4"  # neither a formula nor a missing glyph is an error
    draw_map(comparison(*shape), tmp_path / "map.png", query=name, target=name)
    assert pixels(tmp_path / "map.png").shape[1] == 960


def test_thin_diagonal_survives_pooling() -> None:
    values, rows, columns = pool_map(comparison(2500, 1500))
    assert values.shape == (834, 750)  # each cell pools three rows and two columns
    assert (rows[1], columns[1]) == (3.0, 2.0)
    assert values[:500].max(axis=1).min() == 1.0


@pytest.mark.parametrize("name", ["map.xyz", "map", "map.mp4"])
def test_unknown_image_format_is_refused_with_the_accepted_ones(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"not an image format; choose a name that ends in .*\.png"):
        require_picture_name(name)


def test_missing_folder_is_named_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"nowhere: no such folder; create it first"):
        require_picture_name(tmp_path / "nowhere" / "map.png")


def test_frame_pairs_lie_on_the_segments() -> None:
    found = comparison(30, 30, Segment(0, 8, 10, 18, 0.9), Segment(10, 12, 10, 12, 0.5, mirrored=True))
    pairs = frame_pairs(found, count=5)
    # No frames are similar on the line of the first segment, so the earliest frames near it are paired.
    assert [pair.query_time for pair in pairs] == [1, 3, 5, 7, 11]
    assert all(abs(pair.target_time - pair.query_time - 10) <= 1 for pair in pairs[:4])
    assert pairs[4].target_time == 11
    assert [pair.mirrored for pair in pairs] == [False] * 4 + [True]
    assert [pair.similarity for pair in pairs] == [0, 0, 0, 0, 1]
    assert frame_pairs(comparison(3, 3)) == ()


def test_partner_is_the_most_similar_frame_around_the_line() -> None:
    found = comparison(10, 10, Segment(0, 9, 0.6, 9.6, 0.9))  # the line is 0.6 s away from the diagonal
    pairs = frame_pairs(found, count=3)
    assert [(pair.query_time, pair.target_time, pair.similarity) for pair in pairs] == [
        (1, 1, 1),
        (4, 4, 1),
        (7, 7, 1),
    ]


def test_pairs_are_unique_and_within_the_limit() -> None:
    many = comparison(30, 30, *(Segment(i, i + 0.5, i, i + 0.5, 0.5) for i in range(9)))
    assert len(frame_pairs(many, count=6)) == 6
    short = comparison(30, 30, Segment(4, 6, 4, 6, 0.9))
    assert [pair.query_time for pair in frame_pairs(short, count=6)] == [4, 5, 6]
    assert frame_pairs(comparison(30, 30, Segment(4.2, 4.8, 4.2, 4.8, 0.9))) == ()


def test_pairs_show_the_frames_of_both_videos(tmp_path: Path) -> None:
    red = np.zeros((96, 128, 3), np.uint8)
    red[..., 0] = 255
    green = np.zeros((96, 128, 3), np.uint8)
    green[..., 1] = 255
    first = encode(tmp_path / "red.mp4", [red] * 20)
    second = encode(tmp_path / "green.mp4", [green] * 20)
    pairs = frame_pairs(comparison(2, 2, Segment(0, 2, 0, 2, 0.9)), count=2)
    target = tmp_path / "pairs.png"
    draw_pairs(pairs, target, query=first, target=second)
    image = pixels(target)
    reds = np.argwhere((image[..., 0] > 200) & (image[..., 1:] < 60).all(-1))
    greens = np.argwhere((image[..., 1] > 200) & (image[..., ::2] < 60).all(-1))
    assert len(reds) > 10_000
    assert len(greens) > 10_000
    assert reds[:, 0].max() < greens[:, 0].min()  # the query is above the target


def test_mirrored_pair_is_flipped_back(tmp_path: Path) -> None:
    half = np.zeros((96, 128, 3), np.uint8)
    half[:, :64, 0] = 255  # red on the left
    first = encode(tmp_path / "a.mp4", [half] * 10)
    pairs = frame_pairs(comparison(1, 1, Segment(0, 1, 0, 1, 0.9, mirrored=True)), count=1)
    draw_pairs(pairs, tmp_path / "pairs.png", query=first, target=first)
    image = pixels(tmp_path / "pairs.png")
    reds = np.argwhere((image[..., 0] > 200) & (image[..., 1:] < 60).all(-1))
    middle = image.shape[0] // 2
    upper, lower = reds[reds[:, 0] < middle], reds[reds[:, 0] >= middle]
    assert upper[:, 1].mean() > lower[:, 1].mean() + 20


def test_drawing_no_pairs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="there are no matching frames to show"):
        draw_pairs((), tmp_path / "pairs.png", query="a.mp4", target="b.mp4")


def test_failed_drawing_leaves_no_file(tmp_path: Path) -> None:
    pairs = frame_pairs(comparison(1, 1, Segment(0, 1, 0, 1, 0.9)))
    with pytest.raises(MediaError, match=r"missing\.mp4"):
        draw_pairs(pairs, tmp_path / "pairs.png", query=tmp_path / "missing.mp4", target=tmp_path / "b.mp4")
    assert list(tmp_path.iterdir()) == []


def test_image_format_that_needs_a_missing_program_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InvalidArgumentError, match="cannot be written"):
        draw_curve(detection(), tmp_path / "curve.pgf")
    assert list(tmp_path.iterdir()) == []
