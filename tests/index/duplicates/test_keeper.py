"""Which copy is kept: real files that are enlarged, letterboxed, captioned, marked, bleached or compressed again."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as PILImage
from PIL import ImageDraw, ImageFilter, ImageFont

from tests.support.videos import Image, encode, pan
from vidkin.errors import InvalidArgumentError
from vidkin.index import VideoRecord
from vidkin.index.duplicates.comparisons import FileRecord, PairResult
from vidkin.index.duplicates.detail import measure_detail, most_detailed
from vidkin.index.duplicates.differences import Difference, find_differences
from vidkin.index.duplicates.keeper import KeepRules, check_keep_rules, choose_keeper, is_better
from vidkin.index.duplicates.pictures import Pictures, read_pictures
from vidkin.media import probe, read_frames
from vidkin.similarity import WHOLE, Box, Segment

RATE, COUNT = 5, 30
SIZE = (320, 240)


@cache
def frames() -> tuple[Image, ...]:
    return tuple(pan("astronaut", COUNT, width=SIZE[0], height=SIZE[1]))


def resized(frame: Image, width: int, height: int) -> Image:
    return np.asarray(PILImage.fromarray(frame).resize((width, height), PILImage.Resampling.BICUBIC))


def letterboxed(frame: Image) -> Image:
    canvas = np.zeros((360, 480, 3), np.uint8)
    canvas[60:300, 80:400] = frame
    return canvas


def blurred_around(frame: Image, radius: float = 14) -> Image:
    """As phones show upright video: the picture before a blurred and enlarged copy of itself."""
    large = PILImage.fromarray(resized(frame, 640, 480)).filter(ImageFilter.GaussianBlur(radius))
    canvas = np.asarray(large).copy()
    canvas[120:360, 160:480] = frame
    return canvas


def drawn(frame: Image, text: str, place: tuple[int, int]) -> Image:
    picture = PILImage.fromarray(frame)
    draw = ImageDraw.Draw(picture)
    draw.text(
        place,
        text,
        fill=(255, 255, 255),
        stroke_width=2,
        stroke_fill=(0, 0, 0),
        font=ImageFont.load_default(26),
    )
    return np.asarray(picture)


def gray(frame: Image) -> Image:
    return np.repeat(frame.mean(axis=2, keepdims=True), 3, axis=2).astype(np.uint8)


EDITS: dict[str, Callable[[Image], Image]] = {
    "enlarged": lambda frame: resized(frame, 640, 480),
    "enlarged a little": lambda frame: resized(frame, 480, 360),
    "reduced": lambda frame: resized(frame, 160, 120),
    "reduced and enlarged": lambda frame: resized(resized(frame, 160, 120), *SIZE),
    "letterboxed": letterboxed,
    "blurred around": blurred_around,
    "captioned": lambda frame: drawn(frame, "and then he said", (50, 200)),
    "with a logo": lambda frame: drawn(frame, "TV 9", (240, 8)),
    "gray": gray,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copies")
    save(folder / "original.mp4", frames(), crf=20)
    for name, edit in EDITS.items():
        # Better compressed than the original: bytes alone do not make a copy the best.
        save(folder / f"{name}.mp4", [edit(frame) for frame in frames()], crf=15)
    save(folder / "compressed.mp4", frames(), crf=34)
    save(folder / "trimmed.mp4", frames()[:24], crf=15)
    return folder


def save(path: Path, images: Sequence[Image], *, crf: int) -> None:
    encode(path, images, rate=RATE, options={"crf": str(crf)})


def file_of(path: Path) -> FileRecord:
    info, status = probe(path), path.stat()
    return FileRecord(
        VideoRecord(
            path=str(path),
            size=status.st_size,
            mtime_ns=status.st_mtime_ns,
            content_hash=path.name,
            duration=info.duration,
            width=info.width,
            height=info.height,
            codec=info.codec,
            id=sum(path.name.encode()),
        )
    )


def same_moments(first: FileRecord, second: FileRecord) -> PairResult:
    end = min(first.record.duration, second.record.duration)
    return PairResult(0.9, True, (1.0, 1.0), (Segment(0, end, 0, end, 0.9),))


def kept(folder: Path, *names: str, rule: KeepRules = "best") -> tuple[str, str]:
    files = [file_of(folder / f"{name}.mp4") for name in names]
    keeper, reason = choose_keeper(files, rule, same_moments)
    return Path(keeper.record.path).stem, reason


@pytest.mark.parametrize(
    ("name", "reasons"),
    [
        ("enlarged", ["most detail"]),
        ("enlarged a little", ["most detail"]),
        ("reduced", ["most detail"]),
        ("reduced and enlarged", ["most detail"]),
        ("letterboxed", ["no borders"]),
        ("blurred around", ["no borders", "most detail"]),
        ("captioned", ["no logo or caption"]),
        ("with a logo", ["no logo or caption"]),
        ("gray", ["in color"]),
        ("trimmed", ["longest"]),
        ("compressed", ["highest bit rate", "most detail"]),
    ],
)
def test_the_original_is_kept(folder: Path, name: str, reasons: list[str]) -> None:
    for pair in (("original", name), (name, "original")):
        keeper, reason = kept(folder, *pair)
        assert keeper == "original"
        assert reason in reasons


@pytest.mark.large
def test_the_original_is_kept_among_all(folder: Path) -> None:
    names = ["original", "compressed", "trimmed", *EDITS]
    assert kept(folder, *names)[0] == "original"
    assert kept(folder, *reversed(names))[0] == "original"


def test_borders_are_not_content(folder: Path) -> None:
    original = read_pictures(str(folder / "original.mp4"), [1.0, 3.0, 5.0])
    for name in ("letterboxed", "blurred around"):
        pictures = read_pictures(str(folder / f"{name}.mp4"), [1.0, 3.0, 5.0])
        assert pictures.pixels == pytest.approx(original.pixels, rel=0.1)
        assert pictures.share < 0.5
    assert original.share == 1.0


def test_a_border_that_is_but_lightly_blurred_is_no_picture(folder: Path, tmp_path: Path) -> None:
    """Looked at alone, it passes for one; laid on the original it does not, so that the original is kept."""
    save(tmp_path / "bordered.mp4", [blurred_around(frame, 2) for frame in frames()], crf=15)
    original, bordered = file_of(folder / "original.mp4"), file_of(tmp_path / "bordered.mp4")
    inside: Box = (0.25, 0.25, 0.75, 0.75)

    def boxes(first: FileRecord, second: FileRecord) -> PairResult:
        sides: dict[int, Box] = {original.record.id: WHOLE, bordered.record.id: inside}
        where = sides[first.record.id], sides[second.record.id]
        return PairResult(0.9, True, (1.0, 1.0), (Segment(0, 6, 0, 6, 0.9, 1.0, False, *where),))

    def look(first: FileRecord, second: FileRecord) -> tuple[Difference, ...]:
        return find_differences(first, second, boxes(first, second))

    for pair in ((original, bordered), (bordered, original)):
        assert choose_keeper(pair, "best", boxes) == (bordered, "whole picture")
        assert choose_keeper(pair, "best", boxes, look=look)[0] is original


def test_what_two_files_have_in_common_by_chance_does_not_speak_for_one(folder: Path) -> None:
    """A mirrored copy was compared flipped with the original, and as it is with the gray copy, where little matched."""
    names = ("original", "gray", "compressed")
    original, bleached, mirrored = files = [file_of(folder / f"{name}.mp4") for name in names]

    def results(first: FileRecord, second: FileRecord) -> PairResult:
        pair = {first.record.id, second.record.id}
        if mirrored.record.id not in pair:
            return same_moments(first, second)
        is_flipped = original.record.id in pair
        score = 0.9 if is_flipped else 0.42
        return PairResult(score, True, (0.3, 0.3), (Segment(0, 6, 0, 6, score, 1.0, is_flipped),))

    assert choose_keeper(files, "best", results) == (original, "in color")
    assert choose_keeper([bleached, mirrored, original], "best", results) == (original, "in color")


def test_a_crop_is_not_kept_for_the_want_of_a_border(folder: Path, tmp_path: Path) -> None:
    save(tmp_path / "cut.mp4", [frame[30:210, 40:280] for frame in frames()], crf=10)
    original, crop = file_of(folder / "original.mp4"), file_of(tmp_path / "cut.mp4")

    def boxes(first: FileRecord, second: FileRecord) -> PairResult:
        sides: dict[int, Box] = {original.record.id: (0.125, 0.125, 0.875, 0.875), crop.record.id: WHOLE}
        where = sides[first.record.id], sides[second.record.id]
        return PairResult(0.9, True, (1.0, 1.0), (Segment(0, 6, 0, 6, 0.9, 1.0, False, *where),))

    def look(first: FileRecord, second: FileRecord) -> tuple[Difference, ...]:
        return find_differences(first, second, boxes(first, second))

    assert choose_keeper((original, crop), "best", boxes, look=look) == (original, "whole picture")


@pytest.mark.parametrize(
    ("radius", "reason"),
    [
        (0.0, "highest bit rate"),  # nothing but more bits
        (1.0, "most detail"),
    ],
)
def test_a_blurred_copy_is_not_kept_for_its_bits(folder: Path, tmp_path: Path, radius: float, reason: str) -> None:
    soft = [np.asarray(PILImage.fromarray(frame).filter(ImageFilter.GaussianBlur(radius))) for frame in frames()]
    save(tmp_path / "soft.mp4", soft, crf=2)
    original, blurred = file_of(folder / "original.mp4"), file_of(tmp_path / "soft.mp4")
    assert blurred.record.size > 1.2 * original.record.size
    keeper, why = choose_keeper((original, blurred), "best", same_moments)
    assert (keeper is original, why) == (radius > 0, reason)


def test_a_sharpened_copy_makes_no_blurred_one_of_the_original(folder: Path, tmp_path: Path) -> None:
    sharp = ImageFilter.UnsharpMask(1, 200, 0)
    save(tmp_path / "sharp.mp4", [np.asarray(PILImage.fromarray(frame).filter(sharp)) for frame in frames()], crf=30)
    original, sharpened = file_of(folder / "original.mp4"), file_of(tmp_path / "sharp.mp4")
    assert choose_keeper((sharpened, original), "best", same_moments) == (original, "highest bit rate")


@pytest.mark.parametrize(("rule", "name"), [("largest", "enlarged"), ("longest", "original")])
def test_other_rules(folder: Path, rule: str, name: str) -> None:
    assert kept(folder, "trimmed", "original", "enlarged" if rule == "largest" else "trimmed", rule=rule) == (
        name,
        rule,
    )


def test_each_rule_decides_between_those_that_the_rules_before_it_put_first(folder: Path) -> None:
    names = ("original", "gray", "trimmed")
    assert kept(folder, *names, rule="shortest") == ("trimmed", "shortest")
    assert kept(folder, *names, rule=("picture", "shortest")) == ("trimmed", "in color, shortest")
    assert kept(folder, *names, rule=("picture", "longest")) == ("original", "in color, longest")
    assert kept(folder, *names, rule=(f"outside:{folder}", "picture")) == ("original", "in color, longest")
    assert kept(folder, "original", "gray", rule=("longest", "smallest"))[1] == "smallest"
    assert kept(folder, "original", "gray", rule=("smallest", "best")) == kept(
        folder, "original", "gray", rule="smallest"
    )


def test_the_files_with_the_best_picture_are_remembered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [file_of(folder / f"{name}.mp4") for name in ("original", "gray", "trimmed")]
    known: dict[str, tuple[int, str]] = {}
    first = choose_keeper(files, ("picture", "shortest"), same_moments, known)
    monkeypatch.setattr("vidkin.index.duplicates.keeper.read_pictures", None)
    assert choose_keeper(files, ("picture", "shortest"), same_moments, known) == first


def test_what_is_better_than_all_that_are_favored(folder: Path) -> None:
    """A copy that differs by its age or its name is not better, one with more detail or its colors is."""
    original, gray, twin = (file_of(folder / f"{name}.mp4") for name in ("original", "gray", "original"))
    twin = replace(twin, record=replace(twin.record, path=f"{folder}/./original.mp4", id=9, mtime_ns=1))
    assert is_better([gray, original], [gray], same_moments, {}) == (original, "in color")
    assert is_better([gray, original], [original], same_moments, {}) is None
    assert is_better([original, twin], [original], same_moments, {}) is None
    assert is_better([original, twin], [twin], same_moments, {}) is None
    assert choose_keeper([original, twin], "best", same_moments)[1] == "oldest"


@pytest.mark.parametrize(
    ("longer", "shorter", "is_longer"),
    [
        (7.8, 6.9, True),
        (7.0, 6.8, False),  # .35 s
        (7.0, 6.6, True),
        (1.0, 0.85, False),  # .2 s
        (1.0, 0.75, True),
        (30.0, 29.1, False),  # 1 s
        (30.0, 28.9, True),
        (3600.0, 3530.0, False),  # 72 s
        (3600.0, 3520.0, True),
    ],
)
def test_which_copies_count_as_longer(folder: Path, longer: float, shorter: float, is_longer: bool) -> None:
    """The shorter one has twice the bit rate, which decides if neither counts as longer."""

    def first_seconds(first: FileRecord, second: FileRecord) -> PairResult:
        return PairResult(0.9, True, (1.0, 1.0), (Segment(0, 5, 0, 5, 0.9),))

    record = file_of(folder / "original.mp4").record
    long = FileRecord(replace(record, duration=longer, size=1_000_000, id=1, content_hash="a"))
    short = FileRecord(
        replace(record, duration=shorter, size=round(2_000_000 * shorter / longer), id=2, content_hash="b")
    )
    for pair in ((long, short), (short, long)):
        keeper, reason = choose_keeper(pair, "best", first_seconds)
        assert (keeper, reason) == ((long, "longest") if is_longer else (short, "highest bit rate"))


def test_of_equally_long_copies_the_best_is_kept(folder: Path) -> None:
    names = ("enlarged", "gray", "original", "trimmed")
    assert kept(folder, *names, rule="longest") == ("original", "longest, in color")
    assert kept(folder, "gray", "trimmed", rule="longest") == ("gray", "longest")


def test_of_identical_files_the_one_with_hard_links_is_kept(folder: Path) -> None:
    """Removing it would free nothing."""
    file = file_of(folder / "original.mp4")
    twin = FileRecord(replace(file.record, path=str(folder / "./original.mp4"), id=7), ("/another/name.mp4",))
    for pair in ((file, twin), (twin, file)):
        keeper, reason = choose_keeper(pair, "best", same_moments)
        assert (keeper, reason) == (twin, "has hard links")


def test_age_and_folder(folder: Path, tmp_path: Path) -> None:
    inside = tmp_path / "masters"
    inside.mkdir()
    for place, time in ((inside / "small.mp4", 2_000), (tmp_path / "large.mp4", 1_000)):
        place.write_bytes((folder / ("reduced.mp4" if place.stem == "small" else "original.mp4")).read_bytes())
        os.utime(place, (time, time))
    files = [file_of(tmp_path / "large.mp4"), file_of(inside / "small.mp4")]
    rules = ("oldest", "newest", "best", str(inside))
    chosen = {rule: choose_keeper(files, check_keep_rules(rule), same_moments)[0] for rule in rules}
    assert {rule: Path(file.record.path).stem for rule, file in chosen.items()} == {
        "oldest": "large",
        "newest": "small",
        "best": "large",
        str(inside): "small",
    }
    assert choose_keeper(files, check_keep_rules(f"outside:{inside}"), same_moments)[0] is files[0]
    for wrong in ("prettiest", f"outside:{inside / 'none'}", ["best", "prettiest"]):
        with pytest.raises(InvalidArgumentError, match=r"keep must be one of best, oldest, .* or a folder"):
            check_keep_rules(wrong)
    with pytest.raises(InvalidArgumentError, match="keep must have at least one rule"):
        check_keep_rules([])


def test_pictures_are_read_once(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until a file changes or another one joins; the choice is the same."""
    for name in ("gray", "original", "trimmed"):
        (tmp_path / f"{name}.mp4").write_bytes((folder / f"{name}.mp4").read_bytes())
    read: list[str] = []

    def counted(path: str, times: Sequence[float], *, mirrored: bool = False, turned: int = 0) -> Pictures:
        read.append(Path(path).stem)
        return read_pictures(path, times, mirrored=mirrored, turned=turned)

    monkeypatch.setattr("vidkin.index.duplicates.keeper.read_pictures", counted)
    known: dict[str, tuple[int, str]] = {}

    def choose(*names: str, rule: str = "best") -> tuple[str, str, list[str]]:
        read.clear()
        files = [file_of(tmp_path / f"{name}.mp4") for name in names]
        keeper, reason = choose_keeper(files, rule, same_moments, known)
        return Path(keeper.record.path).stem, reason, sorted(read)

    pair = ("gray", "original")
    assert choose(*pair) == ("original", "in color", ["gray", "original"])
    assert choose(*pair) == ("original", "in color", [])
    assert choose(*pair, rule=str(tmp_path)) == ("original", f"in {tmp_path}, in color", [])
    assert choose(*pair, "trimmed") == ("original", "longest", ["gray", "original", "trimmed"])
    assert choose(*pair) == ("original", "in color", [])
    os.utime(tmp_path / "gray.mp4", (1, 1))
    assert choose(*pair) == ("original", "in color", ["gray", "original"])
    known = dict.fromkeys(known, (7, "of another group"))
    assert choose(*pair)[:2] == ("original", "in color")


def test_a_file_that_cannot_be_read_is_not_kept(folder: Path, tmp_path: Path) -> None:
    """However many pixels it has; and it is tried again."""
    damaged = tmp_path / "enlarged.mp4"
    damaged.write_bytes((folder / "enlarged.mp4").read_bytes())
    files = [file_of(folder / "gray.mp4"), file_of(damaged)]
    damaged.write_bytes(b"not a video")
    known: dict[str, tuple[int, str]] = {}
    keeper, reason = choose_keeper(files, "best", same_moments, known)
    assert (Path(keeper.record.path).stem, reason) == ("gray", "the only one that can be read")
    assert known == {}


@pytest.mark.large
@pytest.mark.data
@pytest.mark.parametrize("name", ["mdn/elf.mp4", "intel/car-detection.mp4", "tmk/pattern-hd-no-bar.mp4"])
@pytest.mark.parametrize("factor", [0.5, 1.5, 2.0])
def test_real_footage_is_not_beaten_by_its_copies(shared_data: Path, tmp_path: Path, name: str, factor: float) -> None:
    images = read_frames(shared_data / "videos" / name, rate=10.0, end=1.5).images
    height, width = (round(side * factor / 2) * 2 for side in images.shape[1:3])
    save(tmp_path / "copy.mp4", [resized(image, width, height) for image in images], crf=20)
    spectra = [
        measure_detail(list(images[::4])),
        measure_detail(list(read_frames(tmp_path / "copy.mp4", rate=None).images[::4])),
    ]
    assert most_detailed(spectra)[0] == 0
