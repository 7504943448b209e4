"""Moving clips: consecutive frames at random positions, cached in memory or decoded again."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.support.labelled import counting_clip, shown
from vidkin.datasets import LabelledSet, open_labelled
from vidkin.errors import InvalidArgumentError
from vidkin.models import Encoder, EncoderConfig, build_model
from vidkin.training import Inputs, LabeledData, ScheduleRecipe, prepare_inputs, train

CPU = torch.device("cpu")


def clip_model(**changes: object) -> Encoder:
    settings: dict[str, object] = {
        "frames": 4,
        "rate": 5.0,
        "size": 16,
        "width": 0.34,
        "hidden": 8,
        "lstm": 8,
    }
    return build_model(EncoderConfig.from_mapping({"trainable": "head", **settings, **changes}))


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> LabelledSet:
    """Four videos of 20 frames at 10 fps, and one of 4 frames."""
    folder = tmp_path_factory.mktemp("videos")
    for category in ("a", "b"):
        for name in ("x", "y"):
            for number in range(2):
                counting_clip(folder / category / name / f"{number}.mp4", 4 if (name, number) == ("y", 1) else 20)
    return open_labelled(folder)


def draw(found: Inputs, place: int, seed: int) -> Tensor:
    clips, _ = found.take(torch.tensor([place]), device=CPU, generator=torch.Generator().manual_seed(seed))
    return clips[0]


def frames_of(clip: Tensor) -> list[int]:
    return shown((clip.movedim(-3, -1) * 255).round().numpy())


def test_clips_are_consecutive_frames_at_every_position(videos: LabelledSet) -> None:
    inputs = prepare_inputs(clip_model(), videos, features=False, moving=True)
    drawn = {tuple(frames_of(draw(inputs, 0, seed))) for seed in range(60)}
    # At 5 fps, every second frame is read: 0, 2, ..., 18. Windows of four of these ten frames have seven positions.
    assert drawn == {tuple(range(start, start + 8, 2)) for start in range(0, 14, 2)}
    assert torch.equal(draw(inputs, 0, 3), draw(inputs, 0, 3))


def test_clips_do_not_move_in_evaluation(videos: LabelledSet) -> None:
    inputs = prepare_inputs(clip_model(), videos, features=False, moving=True)
    clip, _ = inputs.take(torch.tensor([0]), device=CPU)
    assert frames_of(clip[0]) == [0, 2, 4, 6]
    fixed = prepare_inputs(clip_model(), videos, features=False)
    assert torch.equal(inputs.embed(clip_model(), device=CPU), fixed.embed(clip_model(), device=CPU))


def test_items_shorter_than_a_clip_repeat_their_last_frame(videos: LabelledSet) -> None:
    inputs = prepare_inputs(clip_model(), videos, features=False, moving=True)
    clips, lengths = inputs.take(torch.tensor([0, 3]), device=CPU, generator=torch.Generator().manual_seed(0))
    assert lengths is not None
    assert lengths.tolist() == [4, 2]
    assert frames_of(clips[1]) == [0, 2, 2, 2]


@pytest.mark.parametrize("features", [False, True])
def test_frames_too_large_for_memory_are_decoded_again_with_the_same_result(
    videos: LabelledSet, features: bool, caplog: pytest.LogCaptureFixture
) -> None:
    model = clip_model()
    kept = prepare_inputs(model, videos, features=features, moving=True)
    assert kept.moving is not None
    one_item = 10 * kept.moving.frames[0].nbytes
    some = prepare_inputs(model, videos, features=features, moving=True, most_bytes=2 * one_item)
    none = prepare_inputs(model, videos, features=features, moving=True, most_bytes=0)
    assert some.moving is not None
    assert some.moving.frames.nbytes <= 2 * one_item
    assert (some.moving.first >= 0).any()
    assert (some.moving.first < 0).any()
    assert "do not fit into 0.0 GiB and will be decoded every time they are sampled" in caplog.text
    for place in range(len(videos)):
        expected = draw(kept, place, place)
        for other in (some, none):
            assert torch.equal(draw(other, place, place), expected)


def test_features_of_moving_clips_equal_those_of_their_images_and_are_stored(
    videos: LabelledSet, tmp_path: Path
) -> None:
    model = clip_model().eval()
    images = prepare_inputs(model, videos, features=False, moving=True)
    inputs = prepare_inputs(model, videos, features=True, moving=True, cache=tmp_path)
    again = prepare_inputs(model, videos, features=True, moving=True, cache=tmp_path)
    clip = draw(images, 5, 1)
    with torch.no_grad():
        expected = model.frame_features(clip)  # type: ignore[operator]
    assert torch.allclose(draw(inputs, 5, 1), expected, atol=1e-5)
    assert torch.equal(draw(inputs, 5, 1), draw(again, 5, 1))
    # Features of fixed clips of the same items are stored under another name.
    prepare_inputs(model, videos, features=True, cache=tmp_path)
    assert len(list(tmp_path.glob("*.safetensors"))) == 2


def test_positions_differ_between_steps_and_are_the_same_in_a_resumed_run(videos: LabelledSet) -> None:
    inputs = prepare_inputs(clip_model(), videos, features=False, moving=True)
    data = LabeledData(inputs, None, ScheduleRecipe(steps=4, quadlets=2), CPU)
    whole = [batch.draws["uniform"].inputs for batch in data.batches(["uniform"], first=0)]
    rest = [batch.draws["uniform"].inputs for batch in data.batches(["uniform"], first=2)]
    assert all(torch.equal(one, other) for one, other in zip(whole[2:], rest, strict=True))
    positions = {tuple(frames_of(clip)) for batch in whole for clip in batch}
    assert len(positions) > 4


def test_recipe_can_train_on_moving_clips(videos: LabelledSet, tmp_path: Path) -> None:
    recipe = {
        "data": {
            "source": str(videos.root),
            "moving": True,
            "split_by": "item",
            "test": 0.0,
            "validation": 0.0,
        },
        "model": {"frames": 3, "rate": 5.0, "size": 16, "width": 0.34, "hidden": 8, "lstm": 8},
        "objective": {"name": "quadlet"},
        "schedule": {"steps": 2, "quadlets": 2, "device": "cpu"},
    }
    assert train(recipe, output=tmp_path / "model").steps == 2
    with pytest.raises(InvalidArgumentError, match=r"data.moving requires a model that takes clips .* model.rate"):
        train({**recipe, "model": {"frames": 3}}, output=tmp_path / "other")


def test_moving_clips_need_a_rate(videos: LabelledSet) -> None:
    with pytest.raises(InvalidArgumentError, match="moving clips require a model that takes clips, with a rate"):
        prepare_inputs(build_model(EncoderConfig(size=16, frames=4)), videos, features=False, moving=True)
