"""The default detector: cuts anywhere in films of any length, events that are not cuts, thresholds, other networks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as PILImage
from PIL import ImageDraw, ImageFont

import vidkin
from tests.support.videos import Image, encode, pan, photograph
from vidkin.errors import InvalidArgumentError
from vidkin.media import FramePlanes, write_video
from vidkin.shots import DetectedCuts, PlanesDetector, detect, open_detector


def open_planes_detector(name: str = "cuts") -> PlanesDetector:
    detector = open_detector(name)
    assert isinstance(detector, PlanesDetector)
    return detector


def planes(count: int, *, seed: int = 0) -> FramePlanes:
    """A random still image, repeated."""
    height, width = open_planes_detector().grid
    random = np.random.default_rng(seed)
    blocks = random.integers(16, 236, (1, height // 4, width // 4), np.uint8)
    luma = blocks.repeat(4, 1).repeat(4, 2).repeat(count, 0)
    return FramePlanes(luma, np.full((count, 2, height // 2, width // 2), 128, np.uint8), np.arange(count) / 25)


def concatenate_planes(*parts: FramePlanes) -> FramePlanes:
    luma, chroma = (np.concatenate([getattr(part, name) for part in parts]) for name in ("luma", "chroma"))
    return FramePlanes(luma, chroma, np.arange(len(luma)) / 25)


def detect_in(film: FramePlanes, *, block: int = 1000) -> DetectedCuts:
    detector = open_planes_detector()
    for start in range(0, len(film), block):
        detector.push_planes(film[start : start + block])
    return detector.finish()


def cuts_of(film: FramePlanes) -> list[tuple[int, str]]:
    return [(cut.frame, cut.kind) for cut in detect_in(film).cuts]


@pytest.mark.parametrize(("length", "cut"), [(3, 1), (7, 2), (15, 13), (200, 100)])
def test_cut_is_found_anywhere_in_a_film_of_any_length(length: int, cut: int) -> None:
    film = concatenate_planes(planes(cut, seed=1), planes(length - cut, seed=2))
    ((frame, kind),) = cuts_of(film)
    assert frame == cut
    assert kind == "hard" or (kind == "jump" and length < 7)  # two or three frames are too few to tell the kinds apart


def test_still_or_missing_frames_have_no_cuts() -> None:
    assert cuts_of(planes(1)) == []
    assert open_planes_detector().finish().cuts == ()
    assert cuts_of(planes(150)) == []


def test_size_of_pushed_blocks_does_not_matter() -> None:
    film = concatenate_planes(*(planes(count, seed=count) for count in (70, 410, 360, 500)))
    whole, divided = detect_in(film, block=len(film)), detect_in(film, block=37)
    assert [cut.frame for cut in whole.cuts] == [70, 480, 840]
    assert whole.cuts == divided.cuts
    assert whole.curve is not None
    assert divided.curve is not None
    assert np.array_equal(whole.curve.values, divided.curve.values)
    assert len(whole.curve.values) == len(film)


def test_name_of_the_curve_differs_from_the_other_columns() -> None:
    """`vidkin shots --stats` writes it next to the columns frame, time, cut and transition."""
    curve = detect_in(planes(3)).curve
    assert curve is not None
    assert curve.name == "change"


def test_fading_plain_color_is_not_a_transition() -> None:
    film = planes(250)
    film.luma[:] = (126 + 110 * np.cos(np.arange(250) * 2 * np.pi / 84)).astype(np.uint8)[:, None, None]
    assert cuts_of(film) == []


def test_flash_is_not_a_cut() -> None:
    film = planes(80)
    film.luma[40] = 235
    assert cuts_of(film) == []


def test_transition_types_can_be_selected(tmp_path: Path) -> None:
    """A cut at frame 40, and a fade through black from about frame 70 to 100."""
    images = [*pan("coffee", 40), *pan("rocket", 50), *pan("chelsea", 50)]
    for place in range(20):
        for frame, part in ((70 + place, 1 - place / 19), (109 - place, 1 - place / 19)):
            images[frame] = (images[frame] * part).astype(np.uint8)
    path = tmp_path / "film.mp4"
    write_video(path, images, rate=25)
    cuts = detect(path).cuts
    assert [cut.frame for cut in cuts if cut.kind == "hard"] == [40]
    assert {cut.kind for cut in cuts} - {"hard"} == {"fade"}
    assert [cut.frame for cut in detect(path, types=["hard"]).cuts] == [40]
    assert 40 not in [cut.frame for cut in detect(path, types=["fade"]).cuts]
    with pytest.raises(
        InvalidArgumentError,
        match=r"types must be a list of 'hard', 'jump', 'gradual', 'dissolve', 'fade', 'wipe', got \['zoom'\]",
    ):
        detect(path, types=["zoom"])  # type: ignore[list-item]


def test_threshold_must_be_a_probability() -> None:
    with pytest.raises(InvalidArgumentError, match="hard must be above 0 and below 1, got 1"):
        open_detector("cuts?hard=1")


def test_another_network_file_can_be_used(tmp_path: Path) -> None:
    shipped = Path(vidkin.__file__).parent / "shots" / "data"
    for ending in ("onnx", "json"):
        shutil.copy(shipped / f"shots.{ending}", tmp_path / f"other.{ending}")
    notes = json.loads((tmp_path / "other.json").read_text())
    assert notes["provenance"]["made_by"].startswith("python -m vidkin_research.cut_network train")
    film = concatenate_planes(planes(20, seed=1), planes(20, seed=2))

    def frames() -> list[int]:
        detector = open_planes_detector(f"cuts?network={tmp_path / 'other.onnx'}")
        detector.push_planes(film)
        return [cut.frame for cut in detector.finish().cuts]

    assert frames() == [20]
    notes["numbers"]["hard"] = 1 - 1e-9
    (tmp_path / "other.json").write_text(json.dumps(notes))
    assert frames() == []
    del notes["numbers"]["plain"]
    (tmp_path / "other.json").write_text(json.dumps(notes))
    with pytest.raises(InvalidArgumentError, match=r"other\.json: the network's thresholds cannot be read: 'plain'"):
        frames()


@pytest.mark.parametrize("name", ["coffee", "astronaut"])
def test_camera_move_over_a_photograph_is_not_a_transition(tmp_path: Path, name: str) -> None:
    path = encode(tmp_path / "pan.mp4", pan(name, 250, width=160, height=120), rate=25)
    assert detect(path).cuts == ()


def test_cuts_between_the_fields_of_interlaced_video_are_found(tmp_path: Path) -> None:
    """Each scene has 51 fields, so every second cut is between the two fields of a frame."""
    scenes = ("coffee", "chelsea", "rocket", "astronaut", "brick", "grass", "coffee", "gravel")
    fields = [image for seed, name in enumerate(scenes) for image in pan(name, 51, seed=seed)]

    def woven() -> Iterator[Image]:
        for upper, lower in zip(fields[::2], fields[1::2], strict=True):
            frame = upper.copy()
            frame[1::2] = lower[1::2]
            yield frame

    film = encode(tmp_path / "film.mp4", woven(), rate=25, options={"x264-params": "tff=1"})
    found = detect(film)
    assert [round(cut.frame - 25.5 * number) for number, cut in enumerate(found.cuts, 1)] == [0] * 7


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_six_black_frames_within_a_take_are_not_a_cut(seed: int, tmp_path: Path) -> None:
    frames = list(pan("coffee", 120, seed=seed))
    frames[60:66] = [np.zeros_like(frames[0])] * 6
    found = detect(encode(tmp_path / "film.mp4", frames, rate=25))
    assert found.cuts == ()
    assert [(one.start_frame, one.end_frame) for one in found.black] == [(60, 66)]


def test_slides_with_the_same_layout_and_other_text_are_separated_by_a_cut(tmp_path: Path) -> None:
    frames: list[Image] = []
    for number in range(5):
        slide = PILImage.new("RGB", (320, 180), (250, 250, 250))
        drawing = ImageDraw.Draw(slide)
        drawing.rectangle((0, 0, 320, 24), fill=(30, 60, 140))
        random = np.random.default_rng(number)
        for line in range(6):
            text = "".join(map(chr, random.integers(97, 123, int(random.integers(20, 45))).tolist()))
            drawing.text((16, 36 + 20 * line), text, fill=(20, 20, 20))
        frames += [np.asarray(slide)] * 40
    found = detect(encode(tmp_path / "film.mp4", frames, rate=25))
    assert [cut.frame for cut in found.cuts] == [40, 80, 120, 160]


def test_whip_pans_with_motion_blur_are_not_transitions(tmp_path: Path) -> None:
    """The camera alternates six times between resting on a panorama of photographs and a whip pan of five frames."""
    scene = np.concatenate(
        [
            np.asarray(PILImage.fromarray(photograph(name)).convert("RGB").resize((320, 180)), np.float32)
            for name in ("coffee", "rocket", "astronaut", "chelsea", "brick", "coffee", "grass", "rocket")
        ],
        1,
    )
    frames, place = [], 0.0
    for _ in range(6):
        for step in [0.6] * 30 + [60.0] * 5:
            shown = [scene[:, int(at) : int(at) + 320] for at in np.linspace(place, place + step, int(step / 4) + 1)]
            frames.append(np.mean(shown, 0).astype(np.uint8))
            place += step
    assert detect(encode(tmp_path / "film.mp4", frames, rate=25)).cuts == ()


def test_blinking_colored_lights_are_not_cuts(tmp_path: Path) -> None:
    frames = []
    for number, frame in enumerate(pan("coffee", 150)):
        values = np.array(PILImage.fromarray(frame).convert("YCbCr"))
        if 50 <= number < 100:
            values[..., 1:] = (90, 200) if number % 8 < 4 else (128, 60)
        frames.append(np.asarray(PILImage.fromarray(values, "YCbCr").convert("RGB")))
    assert detect(encode(tmp_path / "film.mp4", frames, rate=25)).cuts == ()


@pytest.mark.parametrize("edge", [1, 10], ids=["at once", "faded"])
def test_titles_over_a_take_are_not_transitions(edge: int, tmp_path: Path) -> None:
    title = PILImage.new("L", (192, 128))
    drawing = ImageDraw.Draw(title)
    for line, words in enumerate(("DIRECTED BY", "NOBODY", "IN PARTICULAR")):
        drawing.text((12, 14 + 34 * line), words, fill=255, font=ImageFont.load_default(24))
    mask = np.asarray(title, np.float32)[..., None] / 255
    frames = []
    for number, frame in enumerate(pan("coffee", 200)):
        part = min(max(0, min(number % 70 - 20, 70 - number % 70)) / edge, 1)
        frames.append((frame + (240 - frame.astype(np.float32)) * mask * part).astype(np.uint8))
    assert detect(encode(tmp_path / "film.mp4", frames, rate=25)).cuts == ()
