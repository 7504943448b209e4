"""Footage missing from the kept file is found anywhere, and lossless copies are proven."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.files.films import (
    HEIGHT,
    RATE,
    WIDTH,
    Image,
    add_bars,
    compare,
    draw_text,
    film,
    scale,
    segment,
    summarize,
    to_gray,
    write,
)
from tests.support.videos import encode, pan, photograph
from vidkin.similarity import Segment

LENGTH = 10.0
FILM = film(LENGTH)
OWN = film(LENGTH, seed=7)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("films") / "film.mp4", FILM, 20)


def number(seconds: float) -> int:
    return round(seconds * RATE)


# Footage that only one file has


@pytest.mark.large
@pytest.mark.parametrize("seconds", [0.5, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("start", [0.0, 4.3, 9.9])
def test_replaced_footage_is_reported_with_its_times(
    source: Path, tmp_path: Path, start: float, seconds: float
) -> None:
    start = min(start, LENGTH - seconds)
    frames = FILM[: number(start)] + OWN[: number(seconds)] + FILM[number(start + seconds) :]
    removed = write(tmp_path / "removed.mp4", frames)
    for shift in (0.0, 0.5, -0.5):  # offsets of a match at one frame per second
        proof = compare(source, removed, [segment(LENGTH, shift)])
        found = [finding for finding in proof.findings if finding.start is not None]
        assert len(found) == 1, summarize(proof.findings)
        assert found[0].start == pytest.approx(start, abs=0.31)
        assert found[0].end == pytest.approx(start + seconds, abs=0.31)
        assert "shows something else" in found[0].text or found[0].kind == "ends"


@pytest.mark.large
@pytest.mark.parametrize("seconds", [0.5, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("edges", ["both lines", "hull", "first line", "second line"])
def test_inserted_footage_is_found_even_if_the_match_is_coarse(
    source: Path, tmp_path: Path, seconds: float, edges: str
) -> None:
    at = 4.7
    removed = write(tmp_path / "removed.mp4", FILM[: number(at)] + OWN[: number(seconds)] + FILM[number(at) :])
    first, second = segment(4.4, 0.2), segment(5.0, 0.3 - seconds, start=at + seconds)
    hull = Segment(0.0, LENGTH + seconds, 0.3, LENGTH, 0.9)
    lines = {"both lines": [first, second], "hull": [hull], "first line": [first], "second line": [second]}
    proof = compare(source, removed, lines[edges])
    assert any(
        finding.start is None or finding.start < at + 0.4 < (finding.end or 0.0) for finding in proof.findings
    ), summarize(proof.findings)


@pytest.mark.large
@pytest.mark.parametrize("seconds", [0.5, 1.0, 2.0, 5.0, 10.0])
def test_extra_footage_at_the_ends_is_found(source: Path, tmp_path: Path, seconds: float) -> None:
    own = OWN[: number(seconds)]
    before = compare(source, write(tmp_path / "before.mp4", own + FILM), [segment(LENGTH, -seconds, start=seconds)])
    assert [finding.kind for finding in before.findings] == ["ends"], summarize(before.findings)
    assert f"its first {before.findings[0].end:.1f} s are not in the kept file" == before.findings[0].text
    after = compare(source, write(tmp_path / "after.mp4", FILM + own), [segment(LENGTH)])
    assert [finding.kind for finding in after.findings] == ["ends"], summarize(after.findings)
    assert after.findings[0].start == pytest.approx(LENGTH, abs=0.31)
    assert "are not in the kept file" in after.findings[0].text


def test_shows_that_share_opening_and_closing_are_different(tmp_path: Path) -> None:
    opening, closing = film(9.0, seed=1), film(3.0, seed=2)
    shows = [write(tmp_path / f"{n}.mp4", opening + film(5.0, seed=n) + closing) for n in (3, 4)]
    for segments in ([segment(9.0), segment(3.0, start=14.0)], [segment(17.0)]):
        proof = compare(shows[0], shows[1], segments)
        assert [finding.text for finding in proof.findings] == ["0:09.0-0:14.0 shows something else"]


def test_shortened_cut_is_in_the_whole_film_but_not_vice_versa(source: Path, tmp_path: Path) -> None:
    cut = write(tmp_path / "cut.mp4", FILM[:40] + FILM[60:])
    assert not compare(source, cut, [segment(3.5, 0.3), segment(3.5, 2.3, start=4.3)]).findings
    for segments in ([segment(4.0), segment(4.0, -2.0, start=6.0)], [segment(4.0)], [segment(LENGTH, -1.0)]):
        assert compare(cut, source, segments).findings


def test_film_with_repeated_or_reordered_parts_is_not_in_its_source(source: Path, tmp_path: Path) -> None:
    loop = write(tmp_path / "loop.mp4", FILM[:20] * 10)
    proof = compare(source, loop, [segment(2.0, -2.0 * turn, start=2.0 * turn) for turn in range(10)])
    assert proof.findings
    order = write(tmp_path / "order.mp4", FILM[50:] + FILM[:50])
    proof = compare(source, order, [segment(5.0, 5.0), segment(5.0, -5.0, start=5.0)])
    assert [finding.text for finding in proof.findings] == ["it repeats or reorders parts of the kept file"]


def test_pair_without_a_match_is_not_proven(source: Path) -> None:
    assert [finding.text for finding in compare(source, source, []).findings] == ["no match between the files is known"]


def test_other_footage_does_not_align_with_the_kept_file(source: Path, tmp_path: Path) -> None:
    proof = compare(source, write(tmp_path / "other.mp4", OWN), [segment(LENGTH)])
    assert "picture: its frames do not align with the kept file" in summarize(proof.findings)


# Differences within frames


def with_logo(frames: Sequence[Image]) -> list[Image]:
    logo = np.random.default_rng(1).integers(0, 255, (4, 4, 3), np.uint8).repeat(6, 0).repeat(6, 1)
    result = [frame.copy() for frame in frames]
    for frame in result:
        frame[8:32, -32:-8] = logo
    return result


def with_face(frames: Sequence[Image]) -> list[Image]:
    """Replace 17 % of each frame with other moving footage."""
    side = round((0.17 * WIDTH * HEIGHT) ** 0.5)
    result = [frame.copy() for frame in frames]
    for frame, other in zip(result, pan("astronaut", len(frames), width=side, height=side, seed=5), strict=True):
        frame[30 : 30 + side, 100 : 100 + side] = other
    return result


def with_cover(frames: Sequence[Image]) -> list[Image]:
    result = [frame.copy() for frame in frames]
    for frame in result:
        frame[60:120, 120:200] = 90
    return result


def add_subtitle(text: str, frames: Sequence[Image]) -> list[Image]:
    """Add a subtitle line from 3 to 5 s with 4 % of the frame height."""
    return [*frames[:30], *draw_text(frames[30:50], text, size=0.04), *frames[50:]]


MARKS: dict[str, Callable[[Sequence[Image]], list[Image]]] = {
    "caption": partial(draw_text, text="BREAKING NEWS", size=0.1),
    "subtitles": partial(add_subtitle, "I never said that she was there."),
    "logo": with_logo,
    "face": with_face,
    "cover": with_cover,
}


@pytest.mark.large
@pytest.mark.parametrize("name", MARKS)
def test_overlay_on_one_of_two_copies_is_found_in_both_directions(source: Path, tmp_path: Path, name: str) -> None:
    marked = write(tmp_path / "marked.mp4", MARKS[name](FILM))
    for kept, removed in ((source, marked), (marked, source)):
        proof = compare(kept, removed, [segment(LENGTH, 0.3)])
        assert any(finding.kind == "picture" for finding in proof.findings)


def test_overlay_on_a_smaller_copy_is_found(source: Path, tmp_path: Path) -> None:
    marked = scale(MARKS["subtitles"](scale(FILM, 2 * WIDTH, 2 * HEIGHT)), WIDTH // 2, HEIGHT // 2)
    assert compare(source, write(tmp_path / "marked.mp4", marked), [segment(LENGTH, 0.3)]).findings


def test_same_film_with_subtitles_in_another_language_is_not_a_copy(tmp_path: Path) -> None:
    one = write(tmp_path / "one.mp4", add_subtitle("I never said that she was there.", FILM))
    two = write(tmp_path / "two.mp4", add_subtitle("Nunca dije que estuviera.", FILM))
    assert "lower part differs" in summarize(compare(one, two, [segment(LENGTH)]).findings)


def test_karaoke_videos_with_the_same_background_are_not_copies(tmp_path: Path) -> None:
    background = [next(pan("coffee", 1, width=WIDTH, height=HEIGHT))] * 80
    texts = {
        "one": ("HELLO FROM THE", "OTHER SIDE", "AT LEAST I", "CAN SAY"),
        "two": ("YESTERDAY", "ALL MY", "TROUBLES", "SEEMED"),
    }
    songs = []
    for name, lines in texts.items():
        frames = [
            frame
            for turn, line in enumerate(lines)
            for frame in draw_text(background[20 * turn : 20 * turn + 20], line, size=0.12, at=(0.5, 0.5))
        ]
        songs.append(write(tmp_path / f"{name}.mp4", frames))
    assert compare(*songs, [segment(8.0)]).findings


def test_reversed_copy_is_not_proven(tmp_path: Path) -> None:
    kept, removed = write(tmp_path / "kept.mp4", FILM), write(tmp_path / "removed.mp4", FILM[::-1])
    proof = compare(kept, removed, [segment(LENGTH, backwards=True)])
    assert summarize(proof.findings) == "picture: the kept file shows it backwards"


# Lossless copies


def write_interlaced(path: Path, frames: Sequence[Image]) -> Path:
    return encode(path, frames, rate=RATE, options={"crf": "24", "flags": "+ilme+ildct", "x264-params": "tff=1"})


UNEVEN = [frame for n, frame in enumerate(FILM) if n % 3]
COPIES: dict[str, tuple[Callable[[Path], Path], Segment]] = {
    "mkv": (lambda path: write(path.with_suffix(".mkv"), FILM, 30), segment(LENGTH, 0.4)),
    "small": (lambda path: write(path, scale(FILM, 160, 90), 29), segment(LENGTH, -0.4)),
    "hard compression": (lambda path: write(path, FILM, 40), segment(LENGTH)),
    "mpeg4": (lambda path: encode(path, FILM, rate=RATE, codec="mpeg4"), segment(LENGTH)),
    "gray": (lambda path: write(path, to_gray(FILM)), segment(LENGTH, 0.2)),
    "mirrored": (lambda path: write(path, [f[:, ::-1] for f in FILM]), segment(LENGTH, mirrored=True)),
    "turned": (lambda path: write(path, [np.rot90(f) for f in FILM]), segment(LENGTH, turned=90)),
    "letterboxed": (lambda path: write(path, add_bars(FILM, down=30)), segment(LENGTH)),
    "pillarboxed": (lambda path: write(path, add_bars(FILM, across=60)), segment(LENGTH)),
    "cropped": (lambda path: write(path, [f[8:-8, 16:-16] for f in FILM]), segment(LENGTH)),
    "brighter": (lambda path: write(path, [(f * 0.8 + 40).astype(np.uint8) for f in FILM]), segment(LENGTH)),
    "interlaced": (lambda path: write_interlaced(path, FILM), segment(LENGTH)),
    "trimmed": (lambda path: write(path, FILM[13:90]), segment(7.7, 1.0)),
    "half the frames": (lambda path: write(path, FILM[::2], rate=5), segment(LENGTH)),
    "every frame thrice": (lambda path: write(path, [f for f in FILM for _ in range(3)], rate=30), segment(LENGTH)),
    "faster": (
        lambda path: write(path, FILM, rate=Fraction(104, 10)),
        segment(9.6, speed=1.045),
    ),
    "half speed": (
        lambda path: encode(path, FILM, times=(2 * n / RATE for n in range(len(FILM)))),
        segment(19.5, 0.2, speed=0.5),
    ),
    "variable rate": (
        lambda path: encode(path, UNEVEN, times=(n / RATE for n in range(len(FILM)) if n % 3)),
        segment(9.0, 0.5),
    ),
    "later start": (lambda path: encode(path, FILM, times=(3 + n / RATE for n in range(100))), segment(LENGTH)),
}


@pytest.mark.parametrize("name", COPIES)
def test_lossless_copy_is_proven(source: Path, tmp_path: Path, name: str) -> None:
    make, match = COPIES[name]
    proof = compare(source, make(tmp_path / "copy.mp4"), [match])
    assert not proof.findings, summarize(proof.findings)


def by_matrix_of_709(frames: Sequence[Image]) -> list[Image]:
    """Convert frames so that encoding them with BT.601 stores the values that BT.709 would give for the originals."""
    rows = []
    for red, blue in ((0.2126, 0.0722), (0.299, 0.114)):
        luma = np.array([red, 1 - red - blue, blue])
        rows.append(
            np.stack(
                [luma, ([0, 0, 1] - luma) / (2 - 2 * blue), ([1, 0, 0] - luma) / (2 - 2 * red)],
            )
        )
    matrix = np.linalg.inv(rows[1]) @ rows[0]
    return [np.clip(np.rint(frame @ matrix.T), 0, 255).astype(np.uint8) for frame in frames]


def tint(frames: Sequence[Image]) -> list[Image]:
    """Tint parts of the frames red and green with equal brightness, which tone curves cannot undo."""
    copies = [frame.copy() for frame in frames]
    for frame in copies:
        frame[:, : WIDTH // 8] = frame[:, : WIDTH // 8] * (0.3, 0.05, 0.05) + (150, 10, 10)
        frame[:, -WIDTH // 8 :] = frame[:, -WIDTH // 8 :] * (0.05, 0.15, 0.05) + (10, 80, 10)
    return copies


@pytest.mark.parametrize("kept_is_converted", [True, False])
def test_copy_with_another_color_matrix_is_proven(tmp_path: Path, kept_is_converted: bool) -> None:
    frames = tint(to_gray(FILM[:50]))
    plain = write(tmp_path / "plain.mp4", frames)
    converted = write(tmp_path / "converted.mp4", by_matrix_of_709(frames))
    pair = (converted, plain) if kept_is_converted else (plain, converted)
    proof = compare(*pair, [segment(5.0)])
    assert not proof.findings, summarize(proof.findings)


def test_copy_in_other_colors_is_not_mistaken_for_another_color_matrix(tmp_path: Path) -> None:
    frames = tint(to_gray(FILM[:50]))
    other = [frame.copy() for frame in frames]
    for frame in other:
        frame[: HEIGHT // 4, : WIDTH // 4] = frame[: HEIGHT // 4, : WIDTH // 4, ::-1]
    proof = compare(write(tmp_path / "a.mp4", frames), write(tmp_path / "b.mp4", other), [segment(5.0)])
    assert proof.findings


def test_gray_file_does_not_contain_the_film_in_color(source: Path, tmp_path: Path) -> None:
    proof = compare(write(tmp_path / "gray.mp4", to_gray(FILM)), source, [segment(LENGTH)])
    assert "picture: the kept file is gray, this one has color" in summarize(proof.findings)


@pytest.mark.large
@pytest.mark.parametrize("share", [0.03, 0.05, 0.1])
@pytest.mark.parametrize("width", [WIDTH, HEIGHT])
def test_crop_does_not_contain_the_whole_frame(tmp_path: Path, share: float, width: int) -> None:
    whole = [frame[:, :width] for frame in FILM[:40]]
    down, across = (round(share * side / 2) * 2 for side in (HEIGHT, width))
    cropped = [frame[down:-down, across:-across] for frame in whole]
    pair = write(tmp_path / "crop.mp4", cropped), write(tmp_path / "whole.mp4", whole)
    assert "more of the scene" in summarize(compare(*pair, [segment(4.0)]).findings)


def test_borders_around_the_kept_frame_are_reported(source: Path, tmp_path: Path) -> None:
    proof = compare(write(tmp_path / "boxed.mp4", add_bars(FILM, down=30)), source, [segment(LENGTH)])
    assert summarize(proof.findings) == "borders: the kept file has borders around the frame"


def test_black_ends_and_frozen_frames_are_not_extra_footage(source: Path, tmp_path: Path) -> None:
    black = [np.zeros_like(FILM[0])] * 20
    removed = write(tmp_path / "black.mp4", black + FILM + black)
    assert not compare(source, removed, [segment(LENGTH, -2.0, start=2.0)]).findings
    stuck = write(tmp_path / "stuck.mp4", [*FILM[:31], *[FILM[30]] * 2, *FILM[33:]])
    assert not compare(source, stuck, [segment(LENGTH)]).findings


# Still images and repeated takes


def test_every_slide_is_compared_even_if_stored_as_a_single_frame(tmp_path: Path) -> None:
    slides = [next(pan(name, 1, width=WIDTH, height=HEIGHT)) for name in ("coffee", "astronaut", "rocket", "chelsea")]
    moving = list(pan("brick", 60, width=WIDTH, height=HEIGHT))
    times = [*(n / RATE for n in range(60)), 7.0, 12.0, 17.0, 22.0]
    kept = encode(tmp_path / "kept.mp4", [*moving, *slides], times=times)
    for changed in range(4):
        others = [slide if row != changed else OWN[0] for row, slide in enumerate(slides)]
        removed = encode(tmp_path / f"{changed}.mp4", [*moving, *others], times=times)
        assert compare(kept, removed, [segment(22.0)]).findings, changed
    assert not compare(kept, encode(tmp_path / "same.mp4", [*moving, *slides], times=times), [segment(22.0)]).findings


def noisy(image: Image, *, seed: int, level: float, light: float = 1.0, count: int = 60) -> list[Image]:
    random = np.random.default_rng(seed)
    return [
        np.clip(light * image + random.normal(0, level, image.shape[:2])[..., None], 0, 255).astype(np.uint8)
        for _ in range(count)
    ]


@pytest.mark.parametrize("crf", [20, 28, 35])
def test_two_takes_with_a_static_camera_are_never_proven(tmp_path: Path, crf: int) -> None:
    scene = next(pan("coffee", 1, width=WIDTH, height=HEIGHT))
    kept = write(tmp_path / "kept.mp4", noisy(scene, seed=1, level=5), crf)
    other = write(tmp_path / "other.mp4", noisy(scene, seed=2, level=5), crf)
    darker = write(tmp_path / "darker.mp4", noisy(scene, seed=3, level=5, light=0.85), crf)
    assert compare(kept, darker, [segment(6.0)]).findings
    proof = compare(kept, other, [segment(6.0)])
    assert proof.findings or proof.is_still


def test_person_who_moves_differently_is_another_take(tmp_path: Path) -> None:
    scene = next(pan("coffee", 1, width=WIDTH, height=HEIGHT))
    head = np.ascontiguousarray(photograph("astronaut")[20:200, 150:300][::4, ::4])
    takes = []
    for seed in (1, 2):
        frames = noisy(scene, seed=seed, level=3)
        for n, frame in enumerate(frames):
            x = round(130 + 60 * np.sin(seed * n / 10 + seed))
            frame[60 : 60 + head.shape[0], x : x + head.shape[1]] = head
        takes.append(write(tmp_path / f"{seed}.mp4", frames))
    assert compare(*takes, [segment(6.0)]).findings


def test_slide_show_and_still_are_proven(tmp_path: Path) -> None:
    slides = [next(pan(name, 1, width=WIDTH, height=HEIGHT)) for name in ("coffee", "astronaut", "rocket")]
    show = [slide for slide in slides for _ in range(25)]
    pair = write(tmp_path / "show.mp4", show, 20), write(tmp_path / "copy.mp4", show, 30)
    assert not compare(*pair, [segment(7.5)]).findings
    still = write(tmp_path / "still.mp4", show[:25], 20), write(tmp_path / "still copy.mp4", show[:25], 30)
    proof = compare(*still, [segment(2.5)])
    assert proof.is_still
    assert not proof.findings


def test_still_shown_longer_than_in_the_kept_file_is_a_missing_end(tmp_path: Path) -> None:
    still = [next(pan("coffee", 1, width=WIDTH, height=HEIGHT))]
    kept, removed = write(tmp_path / "kept.mp4", still * 20), write(tmp_path / "removed.mp4", still * 100)
    assert compare(kept, removed, [segment(2.0)]).findings


# Unusual durations


def test_one_second_clip_is_proven_and_a_different_one_is_not(tmp_path: Path) -> None:
    clip = write(tmp_path / "clip.mp4", FILM[:10], 20)
    assert not compare(clip, write(tmp_path / "copy.mp4", FILM[:10], 30), [segment(1.0)]).findings
    assert compare(clip, write(tmp_path / "other.mp4", FILM[:5] + OWN[:5]), [segment(1.0)]).findings


def test_single_frame_is_found_only_in_the_film_that_contains_it(source: Path, tmp_path: Path) -> None:
    frame = write(tmp_path / "frame.mp4", FILM[33:34])
    proof = compare(source, frame, [Segment(0.0, 0.0, 3.3, 3.3, 0.9)])
    assert not proof.findings, summarize(proof.findings)
    assert len(proof.stretches) == 1
    assert compare(source, write(tmp_path / "other.mp4", OWN[33:34]), [Segment(0.0, 0.0, 3.3, 3.3, 0.9)]).findings
    assert compare(frame, source, [Segment(3.3, 3.3, 0.0, 0.0, 0.9)]).findings
