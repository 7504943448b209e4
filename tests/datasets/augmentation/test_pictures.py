"""Frame edits of clips: RandAugment, overlays, layouts, and the two views."""

from __future__ import annotations

from typing import get_args

import pytest
import torch

from vidkin.datasets.augmentation import (
    LEAST_SHARED,
    OPERATIONS,
    StrongSettings,
    TemporalEdit,
    TemporalSettings,
    add_borders,
    add_caption,
    add_logo,
    add_sticker,
    film_screen,
    lay_over,
    picture_in_picture,
    rand_augment,
    reframe,
    split_screen,
    stretch,
    strong_view,
    video_in_video,
    warp,
    weak_view,
)
from vidkin.errors import InvalidArgumentError

STILL = TemporalSettings(weights=(0, 0, 0, 0, 0, 1))


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def clip(frames: int = 6, side: int = 32, seed: int = 0) -> torch.Tensor:
    return torch.rand(frames, 3, side, side, generator=generator(seed))


def plain(*values: float, frames: int = 4, side: int = 32) -> torch.Tensor:
    """Uniform gray clips, [N, T, 3, S, S], with one level per clip."""
    return torch.tensor(values)[:, None, None, None, None].expand(-1, frames, 3, side, side).clone()


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_treat_all_frames_alike_and_stay_in_range(name: str) -> None:
    same = clip(1).expand(5, -1, -1, -1).contiguous()
    for strength in (-1.0, -0.3, 0.3, 1.0):
        edited = OPERATIONS[name](same, strength)
        assert edited.shape == same.shape
        assert 0 <= float(edited.min()) <= float(edited.max()) <= 1 + 1e-5
        torch.testing.assert_close(edited, edited[:1].expand_as(edited))


def test_operations_match_hand_computed_values() -> None:
    gray = plain(0.5)[0]
    torch.testing.assert_close(OPERATIONS["brightness"](gray, 1.0), gray * 1.9)
    torch.testing.assert_close(OPERATIONS["brightness"](gray, -1.0), gray * 0.1)
    torch.testing.assert_close(OPERATIONS["solarize"](plain(0.9)[0], 0.3), plain(0.1)[0])
    torch.testing.assert_close(OPERATIONS["posterize"](gray, 1.0), gray * 0 + 8 / 15)  # 16 levels
    marked = torch.zeros(1, 3, 20, 20)
    marked[..., 3, 10] = 1
    assert OPERATIONS["translate_x"](marked, 1.0)[0, 0].nonzero().tolist() == [[3, 19]]
    assert OPERATIONS["translate_y"](marked, 1.0)[0, 0].nonzero().tolist() == [[12, 10]]
    torch.testing.assert_close(rand_augment(gray, generator(), count=0), gray)
    with pytest.raises(InvalidArgumentError, match="magnitude must be from 0 to 30"):
        rand_augment(gray, generator(), magnitude=31)


def test_overlay_is_the_same_in_all_frames() -> None:
    def caption(images: torch.Tensor, source: torch.Generator) -> torch.Tensor:
        return add_caption(images, source, height=(0.2, 0.3), share=1.0)

    def logo(images: torch.Tensor, source: torch.Generator) -> torch.Tensor:
        return add_logo(images, source, side=(0.2, 0.4), share=1.0)

    frames = clip()
    for overlay in (caption, logo, add_sticker):
        together = lay_over(frames, generator(3), overlay)
        alone = torch.cat([overlay(frame[None], generator(3)) for frame in frames])
        torch.testing.assert_close(together, alone, atol=1e-5, rtol=0)
        assert not torch.equal(together, frames)


def test_sticker_is_round_and_inside_the_image() -> None:
    drawn = add_sticker(torch.zeros(200, 3, 64, 64), generator(), side=(0.3, 0.3))
    area = (drawn.amax(1) > 0).float().mean((1, 2))
    # A disk with a diameter of 0.3, minus eyes and mouth.
    assert 0.04 < float(area.min()) < float(area.max()) < 0.071


def test_stretch_equals_a_warp_along_the_axes() -> None:
    frames = clip()
    matrix = torch.tensor([[-0.6, 0.0, 0.2], [0.0, 0.8, -0.1], [0.0, 0.0, 1.0]])
    expected = warp(frames, matrix.expand(6, 3, 3), 32)
    found = stretch(frames, torch.tensor([[-0.6, 0.2]]), torch.tensor([[0.8, -0.1]]))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_reframed_view_is_centered_or_moves_steadily() -> None:
    ramp = torch.linspace(0, 1, 64).expand(5, 3, 64, 64)
    middle = reframe(ramp, generator(), share=0.5)
    assert float(middle[0, 0, 0, 0]) == pytest.approx(0.25, abs=0.01)
    assert float(middle[0, 0, 0, -1]) == pytest.approx(0.75, abs=0.01)
    moved = reframe(ramp, generator(1), share=0.5, moving=True)[:, 0].mean((1, 2))
    steps = moved.diff()
    assert float(steps.abs().min()) > 0.005
    torch.testing.assert_close(steps, steps[:1].expand(4), atol=1e-4, rtol=0)


@pytest.mark.parametrize("kind", ["blurred", "colored"])
@pytest.mark.parametrize("across", [True, False])
def test_borders_surround_the_whole_frame(kind: str, across: bool) -> None:
    frames = clip(side=64)
    framed = add_borders(frames, generator(), kind=kind, share=0.5, across=across)  # type: ignore[arg-type]
    upright = framed if across else framed.mT
    inner = upright[:, :, 16:48]
    expected = torch.nn.functional.interpolate(
        frames if across else frames.mT, (32, 64), mode="bilinear", antialias=True
    )
    torch.testing.assert_close(inner, expected, atol=1e-5, rtol=0)
    border = upright[:, :, :16]
    deviation = float(border.std((2, 3)).mean())
    assert deviation < (0.1 if kind == "blurred" else 1e-6)


def test_split_screens_and_insets_have_the_expected_area() -> None:
    own, *others = plain(1.0, 0.1, 0.2, 0.3)
    for seed in range(6):
        halves = split_screen(own, torch.stack(others[:1]), generator(seed))
        assert float((halves == 1).float().mean()) == 0.5
        quarters = split_screen(own, torch.stack(others), generator(seed), parts=4)
        assert [float((quarters - value).abs().lt(1e-6).float().mean()) for value in (1, 0.1, 0.2, 0.3)] == [0.25] * 4
        small = picture_in_picture(own, others[0], generator(seed), side=(0.5, 0.5))
        assert float((small == 1).float().mean()) == 0.25
        both = video_in_video(others[0], own, generator(seed), share=(0.75, 0.75))
        assert float((both == 1).float().mean()) == 0.25  # 1 - lambda
    with pytest.raises(InvalidArgumentError, match="got 4 with 1 other clips"):
        split_screen(own, torch.stack(others[:1]), generator(), parts=4)


def test_filmed_screen_is_tilted_and_has_moving_lines() -> None:
    filmed = film_screen(plain(0.5)[0], generator(2))
    assert 0 <= float(filmed.min()) <= float(filmed.max()) <= 1
    assert float((filmed < 0.1).float().mean()) > 0.02  # dark background around the screen
    assert not torch.equal(filmed[0], filmed[1])


def test_views_depend_only_on_the_seed() -> None:
    frames, donors = clip(40), torch.stack([clip(10, seed=seed) for seed in (5, 6, 7)])
    before = frames.clone()
    everything = StrongSettings(arranged=1.0, compressed=1.0, captions=1.0, stickers=1.0, blurred=1.0, inset=1.0)
    for seed in range(10):
        first, second = (strong_view(frames, donors, seed, settings=everything, length=28) for _ in range(2))
        assert torch.equal(first.frames, second.frames)
        assert 1 <= len(first.frames) == len(first.sources) <= 28
        assert first.shows_donor
        assert 0 <= float(first.frames.min()) <= float(first.frames.max()) <= 1 + 1e-5
        assert torch.equal(weak_view(frames, seed).frames, weak_view(frames, seed).frames)
    assert torch.equal(frames, before)
    assert not torch.equal(strong_view(frames, donors, 1).frames[0], strong_view(frames, donors, 2).frames[0])


def test_views_report_the_sources_of_their_frames() -> None:
    """Cropping or mirroring a uniform frame does not change its gray level, which identifies the source frame."""
    grays = (torch.arange(30) / 30)[:, None, None, None].expand(30, 3, 16, 16).clone()
    quiet = StrongSettings(operations=0, captions=0, stickers=0, inset=0, sigma=(0.5, 1.0))
    for seed in range(10):
        view = strong_view(grays, grays.expand(3, 30, 3, 16, 16), seed, settings=quiet)
        shown = view.filled == 0
        torch.testing.assert_close(view.frames[shown].mean((1, 2, 3)), view.sources[shown] / 30, atol=1e-4, rtol=0)
    weak = weak_view(grays, 4, length=28)
    torch.testing.assert_close(weak.frames.mean((1, 2, 3)), weak.sources / 30, atol=1e-4, rtol=0)


def test_views_start_at_random_frames() -> None:
    frames = clip(12, 8)
    starts = {int(weak_view(frames, seed, length=10).sources[0]) for seed in range(40)}
    assert starts == {0, 1, 2}
    plain = StrongSettings(temporal=STILL)
    donors = clip(12, 8)[None].expand(3, -1, -1, -1, -1)
    assert {
        int(strong_view(frames, donors, seed, settings=plain, length=10).sources[0]) for seed in range(40)
    } == starts


@pytest.mark.parametrize("edit", ["shuffle", "faster", "slower", "reverse", "pause", "none"])
def test_both_views_of_a_clip_share_frames_under_all_edits(edit: TemporalEdit) -> None:
    """If both views started at frame 0, a reversed view of 56 frames would share no frames with the weak view."""
    frames, donors = clip(56, 8), clip(56, 8)[None].expand(3, -1, -1, -1, -1)
    names = get_args(TemporalEdit)
    settings = StrongSettings(
        temporal=TemporalSettings(weights=tuple(float(name == edit) for name in names), dropped=0.0),
        operations=0,
        captions=0.0,
        stickers=0.0,
        blurred=0.0,
        inset=0.0,
    )
    for seed in range(30):
        weak = weak_view(frames, seed, length=28)
        strong = strong_view(frames, donors, seed + 1000, settings=settings, length=28, beside=weak.sources)
        shown = strong.sources.unique()
        common = set(weak.sources.tolist()) & set(shown.tolist())
        assert len(common) >= LEAST_SHARED * min(28, len(shown))


def test_edits_have_the_frequencies_in_the_settings() -> None:
    frames, donors = clip(4, 8), torch.stack([clip(4, 8, seed) for seed in (1, 2, 3)])
    settings = StrongSettings(temporal=STILL, operations=0, captions=0, stickers=0, inset=0.3)
    views = [strong_view(frames, donors, seed, settings=settings) for seed in range(400)]
    assert sum(view.shows_donor for view in views) / 400 == pytest.approx(0.3, abs=0.07)


def test_captions_and_stickers_start_at_random_frames() -> None:
    grays = torch.full((20, 3, 32, 32), 0.5)
    donors = grays.expand(3, -1, -1, -1, -1)

    def covered(seed: int, overlaid: tuple[float, float]) -> torch.Tensor:
        settings = StrongSettings(
            temporal=STILL, operations=0, captions=1.0, stickers=0.0, blurred=0.0, inset=0.0, overlaid=overlaid
        )
        frames = strong_view(grays, donors, seed, settings=settings).frames
        return ((frames - 0.5).abs() > 0.01).flatten(1).any(1)

    assert all(bool(covered(seed, (1.0, 1.0)).all()) for seed in range(5))
    for seed in range(5):
        some = covered(seed, (0.25, 0.25))
        assert int(some.sum()) == 5
        assert not bool(some[:5].all())  # anywhere in the clip
    counts = [int(covered(seed, (0.0, 1.0)).sum()) for seed in range(30)]
    assert min(counts) >= 1
    assert max(counts) > 12 > 6 > min(counts)
    with pytest.raises(InvalidArgumentError, match="overlaid"):
        StrongSettings(overlaid=(0.0, 1.5))


@pytest.mark.parametrize("shape", [(3, 8, 8), (2, 3, 8, 9), (0, 3, 8, 8)])
def test_other_shapes_are_rejected(shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidArgumentError, match="clip must"):
        weak_view(torch.zeros(shape), 0)
    with pytest.raises(InvalidArgumentError, match="donors must be at least 3 clips"):
        strong_view(clip(), clip()[None], 0)
