"""The detector 'cuts': the rule by hand, cuts anywhere in films of any length, types, what is no cut, its model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.support.videos import encode, pan
from vidkin.errors import InvalidArgumentError
from vidkin.media import FramePlanes, write_video
from vidkin.shots import cuts as cuts_module
from vidkin.shots import detect, detect_shots
from vidkin.shots.band import BAND_CHANNELS
from vidkin.shots.cut_numbers import HARD_NUMBERS
from vidkin.shots.cuts import CutDetector, CutModel, CutRules, Proposal, ProposalScore, decide
from vidkin.shots.gradual_numbers import GRADUAL_NUMBERS

GRADUAL = dict.fromkeys(GRADUAL_NUMBERS, 0.0)


def first_of(count: int) -> ProposalScore:
    """The first of so many numbers, up to 20, is the logit."""
    return ProposalScore(means=(0.0,) * count, deviations=(5.0,) * count, weights=(5.0, *[0.0] * (count - 1)), bias=0.0)


def rules(**changes: float) -> CutRules:
    """Hard: the first number; gradual: the number 'ends'."""
    return replace(CutRules(first_of(len(HARD_NUMBERS)), first_of(len(GRADUAL_NUMBERS))), **changes)


def hard(frame: int, logit: float) -> Proposal:
    numbers = {**dict.fromkeys(HARD_NUMBERS, 0.0), "letters": 1.0, "distance": logit}
    return Proposal(frame, frame, tuple(numbers.values()), "hard")


def gradual(first: int, last: int, logit: float, *, picture: float = 30.0) -> Proposal:
    numbers = {**GRADUAL, "ends": logit, "picture": float(np.log(picture + 1))}
    return Proposal(first, last, tuple(numbers.values()), "fade")


def planes(count: int, *, seed: int = 0) -> FramePlanes:
    """A still, random picture."""
    random = np.random.default_rng(seed)
    luma = np.repeat(random.integers(16, 236, (1, 128, 128), np.uint8), count, 0)
    return FramePlanes(luma, np.full((count, 2, 64, 64), 128, np.uint8), np.arange(count) / 25)


def joined(*parts: FramePlanes) -> FramePlanes:
    luma, chroma = (np.concatenate([getattr(part, name) for part in parts]) for name in ("luma", "chroma"))
    return FramePlanes(luma, chroma, np.arange(len(luma)) / 25)


def cuts_of(film: FramePlanes, *, block: int = 1000) -> list[tuple[int, str]]:
    detector = CutDetector()
    for start in range(0, len(film), block):
        end = start + block
        detector.push_planes(FramePlanes(film.luma[start:end], film.chroma[start:end], film.timestamps[start:end]))
    return [(cut.frame, cut.kind) for cut in detector.finish().cuts]


@pytest.mark.parametrize(("length", "cut"), [(2, 1), (3, 2), (7, 2), (15, 13), (200, 100)])
def test_a_cut_is_found_anywhere_in_a_film_of_any_length(length: int, cut: int) -> None:
    film = joined(planes(cut, seed=1), planes(length - cut, seed=2))
    assert cuts_of(film) == [(cut, "hard")]


def test_nothing_is_found_in_one_frame_or_none_or_where_nothing_moves() -> None:
    assert cuts_of(planes(1)) == []
    assert CutDetector().finish().cuts == ()
    assert cuts_of(planes(150)) == []


def test_blocks_change_nothing() -> None:
    film = joined(planes(70, seed=1), planes(110, seed=2), planes(60, seed=3))
    assert cuts_of(film) == cuts_of(film, block=37) == [(70, "hard"), (180, "hard")]


def test_the_curve_has_another_name_than_the_columns_beside_it() -> None:
    """`vidkin shots --stats` writes it beside the columns frame, time, cut and transition."""
    detector = CutDetector()
    detector.push_planes(planes(3))
    assert detector.finish().curve.name == "change"


def test_a_fading_plain_color_makes_no_transition() -> None:
    course = 126 + 110 * np.cos(np.arange(250) * 2 * np.pi / 84)
    luma = np.broadcast_to(course.astype(np.uint8)[:, None, None], (250, 128, 128))
    film = FramePlanes(np.ascontiguousarray(luma), np.full((250, 2, 64, 64), 128, np.uint8), np.arange(250) / 25)
    assert cuts_of(film) == []


def test_a_flash_makes_no_cut() -> None:
    film = planes(80)
    film.luma[40] = 235
    assert cuts_of(film) == []


def test_types_can_be_chosen(tmp_path: Path) -> None:
    """Cut at 40; a fade through black from about 70 to 100."""
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


def test_of_two_cuts_side_by_side_the_surer_one_is_kept() -> None:
    cuts = decide([hard(10, 1.0), hard(11, 2.0), hard(13, 1.0), hard(20, -1.0)], [], rules())
    assert [cut.frame for cut in cuts] == [11, 13]
    assert cuts[0].confidence == pytest.approx(1 / (1 + np.exp(-2)))


def test_a_plain_cut_counts_against_its_score() -> None:
    """From one still shot to another that has nothing of it; with a block in five that stays, the score decides."""
    numbers = {**dict.fromkeys(HARD_NUMBERS, 0.0), "letters": 1.0, "distance": -1.0, "steady": 4.0, "again": 0.5}
    assert next(iter(numbers)) == "distance"  # a logit of -1: a probability of .27
    proposal = Proposal(10, 10, tuple(numbers.values()), "hard")
    assert [cut.confidence for cut in decide([proposal], [], rules())] == [0.9]
    numbers["stays"] = 0.2
    assert decide([replace(proposal, numbers=tuple(numbers.values()))], [], rules()) == ()


def measured(**changes: float) -> Proposal:
    """A cut at frame 10 with these numbers, all others 0; ``distance`` is the logit, here -1 unless given."""
    numbers = {**dict.fromkeys(HARD_NUMBERS, 0.0), "letters": 1.0, "distance": -1.0, **changes}
    return Proposal(10, 10, tuple(numbers.values()), "hard")


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, [0.6]),
        ({"contrast": 0.5}, []),  # the frames around move nearly as much
        ({"again": 0.1}, []),  # the picture changes as much again soon after: frames are repeated
        ({"brightness": 0.2}, []),  # a flash
        ({"rectangle": 0.6, "alive": 0.4}, []),  # a graphic over what moves
        ({"rectangle": 0.6, "alive": 0.4, "stays": 0.4}, [0.6]),  # too much of the picture changes for a graphic
        ({"frozen": -3.0}, []),  # the frame before was shown twice
        ({"alive": 0.0, "stays": 0.9}, []),  # hardly anything changes, where nothing moves
        ({"alive": 0.0}, [0.6]),
    ],
)
def test_a_jump_in_a_scene_that_stays_is_a_cut(changes: dict[str, float], found: list[float]) -> None:
    numbers = {"contrast": 1.0, "again": 0.5, "stays": 0.7, "alive": 0.4, **changes}
    assert [cut.confidence for cut in decide([measured(**numbers)], [], rules())] == found
    # Whoever asks for surer cuts does not get it.
    assert decide([measured(**numbers)], [], rules(hard_threshold=0.7)) == ()


def test_repeated_frames_make_no_cut() -> None:
    numbers = {"distance": -1.0, "steady": 4.0}
    assert len(decide([measured(**numbers, again=0.5)], [], rules())) == 1
    assert decide([measured(**numbers, again=0.0)], [], rules()) == ()


def test_a_graphic_that_pops_up_makes_no_cut_at_any_score() -> None:
    """A rectangle that nothing moves in changes; with half of the picture, or with what moves, the score decides."""
    numbers = {"distance": 3.0, "stays": 0.8, "rectangle": 0.7}
    assert decide([measured(**numbers)], [], rules()) == ()
    for other in ({"stays": 0.5}, {"alive": 0.5}, {"rectangle": 0.3}, {"stays": 1.0}):
        assert len(decide([measured(**{**numbers, **other})], [], rules())) == 1


def test_a_screen_that_changes_inside_a_picture_makes_no_cut_but_a_narrow_picture_between_bars_does() -> None:
    numbers = {"distance": 3.0, "stays": 0.6, "rectangle": 0.9, "alive": 0.5, "beside_it": 0.5}
    assert decide([measured(**numbers)], [], rules()) == ()
    for other in ({"beside_it": 0.1}, {"stays": 0.4}, {"rectangle": 0.6}):
        assert len(decide([measured(**{**numbers, **other})], [], rules())) == 1


def test_letters_that_appear_over_a_picture_make_no_cut() -> None:
    assert decide([measured(distance=3.0, letters=0.1, picture=3.5)], [], rules()) == ()
    assert len(decide([measured(distance=3.0, letters=0.1, picture=1.5)], [], rules())) == 1  # a cut to plain color


def test_a_cut_to_what_looks_nearly_the_same_is_a_jump() -> None:
    """The logarithm of the distance decides; at -1, where the vectors are .37 apart, a jump is .65 sure."""
    (cut,) = decide([measured(distance=-1.0, contrast=1.0, again=0.5, stays=0.4, picture=3.0)], [], rules())
    assert cut.kind == "jump"
    assert cut.kind_confidence == pytest.approx(1 / (1 + np.exp(-0.6)))
    (cut,) = decide([measured(distance=-1.0, contrast=1.0, again=0.5, stays=0.4, structure=1.4)], [], rules())
    assert (cut.kind, cut.kind_confidence) == ("hard", 1.0)  # the frames have nothing in common
    (cut,) = decide([measured(distance=-1.0, contrast=1.0, again=0.5, stays=0.4, picture=0.5)], [], rules())
    assert (cut.kind, cut.kind_confidence) == ("hard", 1.0)  # one of them is plain
    (cut,) = decide([measured(distance=0.2, picture=3.0)], [], rules())
    assert cut.kind == "hard"
    assert cut.kind_confidence == pytest.approx(1 / (1 + np.exp(-3.0)))


def test_hard_cuts_and_transitions_settle_who_is_right() -> None:
    short, long = gradual(8, 12, 3.0), gradual(5, 30, 3.0)
    assert [(c.kind, c.frame) for c in decide([hard(10, 1.0)], [short], rules())] == [("hard", 10)]
    assert [(c.kind, c.frame) for c in decide([hard(10, 1.0)], [long], rules())] == [("fade", 18)]
    assert [(c.kind, c.frame) for c in decide([hard(10, 5.0)], [long], rules())] == [("hard", 10)]
    assert decide([], [gradual(5, 30, 3.0, picture=1.0)], rules()) == ()
    # A sure cut where a long transition begins or ends stands beside it.
    assert [(c.kind, c.frame) for c in decide([hard(31, 5.0)], [long], rules())] == [
        ("fade", 18),
        ("hard", 31),
    ]
    assert [(c.kind, c.frame) for c in decide([hard(31, 1.0)], [long], rules())] == [("fade", 18)]
    (cut,) = decide([], [long], rules())
    assert (cut.kind, cut.start_frame, cut.end_frame) == ("fade", 5, 30)
    assert decide([], [long], rules(gradual_threshold=0.99)) == ()


def test_rules_must_fit_the_numbers() -> None:
    with pytest.raises(InvalidArgumentError, match=f"hard must have {len(HARD_NUMBERS)} weights, got 1"):
        CutRules(first_of(1), rules().gradual)
    with pytest.raises(InvalidArgumentError, match="hard_threshold must be above 0 and below 1, got 1"):
        CutDetector(hard=1.0)


@pytest.mark.large
def test_a_model_is_loaded_from_its_files(tmp_path: Path) -> None:
    model = CutModel.load()
    for ending in (".safetensors", ".onnx"):
        shipped = Path(cuts_module.__file__).with_name("data") / f"cuts{ending}"
        (tmp_path / f"model{ending}").write_bytes(shipped.read_bytes())
    again = CutModel.load(tmp_path / "model.safetensors")
    assert again.rules == model.rules
    assert again.provenance == model.provenance
    assert again.provenance["made_by"] == "benchmarks/train_cuts.py"
    features = np.random.default_rng(0).random((200, BAND_CHANNELS), np.float32)
    assert np.array_equal(again.network.probabilities(features), model.network.probabilities(features))
    (tmp_path / "model.onnx").rename(tmp_path / "away.onnx")
    with pytest.raises(InvalidArgumentError, match=r"model\.onnx: is missing or of other weights than model\.safet"):
        CutModel.load(tmp_path / "model.safetensors")
    (tmp_path / "other").write_text("x")
    with pytest.raises(InvalidArgumentError, match="must be a model of the detector 'cuts'"):
        CutModel.load(tmp_path / "other")
    weights = load_file(tmp_path / "model.safetensors")
    weights["enter.bias"][0] = float("inf")
    save_file(weights, tmp_path / "damaged.safetensors")
    with pytest.raises(InvalidArgumentError, match=r"damaged\.safetensors: .* has values that are not finite"):
        CutModel.load(tmp_path / "damaged.safetensors")


@pytest.mark.parametrize(
    ("numbers", "found"),
    [
        # A fifth of the picture is new and fills a rectangle; the rest is found again a little elsewhere.
        ({"anew": 0.2, "anew_filled": 0.9}, False),
        ({"anew": 0.2, "anew_filled": 0.4}, True),  # a person who moved is no rectangle
        ({"anew": 0.9, "anew_filled": 0.9}, True),  # nearly all of the picture is new
        # Letters pass over what moves: the change is one of many alike, and no other cut is near.
        ({"anew": 0.5, "again": 0.1, "others": -6.0, "contrast": 0.8}, False),
        ({"anew": 0.5, "again": 0.1, "others": 0.0, "contrast": 0.8}, True),  # another cut, two to six frames away
        ({"anew": 0.5, "again": 0.1, "others": -6.0, "contrast": 4.0}, True),  # vectors far apart, unlike those around
        ({"anew": 0.9, "again": 0.1, "others": -6.0, "contrast": 0.8}, True),  # nothing is found again
    ],
)
def test_a_screen_or_letters_in_a_moving_picture_make_no_cut(numbers: dict[str, float], found: bool) -> None:
    likely = hard(31, 3.0)
    values = dict(zip(HARD_NUMBERS, likely.numbers, strict=True)) | {"picture": 3.0} | numbers
    cuts = decide([replace(likely, numbers=tuple(values.values()))], [], rules())
    assert [cut.frame for cut in cuts] == ([31] if found else [])


@pytest.mark.parametrize("name", ["coffee", "astronaut"])
def test_a_camera_that_wanders_over_a_photograph_makes_no_transition(tmp_path: Path, name: str) -> None:
    # Encoded in one thread, the pan over coffee is taken for a gradual transition.
    frames = pan(name, 250, width=160, height=120)
    path = encode(tmp_path / "pan.mp4", frames, rate=25, options={"threads": "3"})
    assert len(detect_shots(path)) == 1
