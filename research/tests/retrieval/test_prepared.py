"""A prepared collection: training clips vary, evaluation clips are fixed."""

from __future__ import annotations

import itertools
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.support.labelled import counting_clip, shown
from vidkin.datasets import open_labelled
from vidkin_research.frame_excerpts import make_frame_excerpts
from vidkin_research.retrieval import ComparisonPlan, ComparisonSet, RunSchedule, method_named
from vidkin_research.retrieval.prepared import PreparedSet
from vidkin_research.retrieval.sets import comparison_set
from vidkin_research.retrieval.training import train_method

SPLITS = ("train", "train", "validation", "test")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> PreparedSet:
    """Four classes of four videos of 20 frames, with three excerpts of four frames; two per class are for training."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("videos")
    for category in ("a", "b"):
        for name in ("x", "y"):
            for number in range(4):
                counting_clip(folder / category / name / f"{number}.mp4", 20)
    labelled = open_labelled(folder)
    items = [replace(item, split=SPLITS[int(item.path.stem)]) for item in labelled.items]
    excerpts = make_frame_excerpts(labelled.with_items(items), count=3, frames=4)
    chosen = ComparisonSet(name="made", video=True, folder="", reader="tree", rate=10.0, size=32, about="made")
    plan = ComparisonPlan(sets=("videos",), backbone="small", hidden=8, units=8, frames=4)
    return PreparedSet(plan, chosen, excerpts, None, tmp_path_factory.mktemp("work"), None)


def test_training_clips_are_consecutive_frames_of_the_whole_video(prepared: PreparedSet) -> None:
    train = prepared.parts(method_named("c3d"))["train"]
    assert train.sources is not None
    # Three excerpts of each of the eight training videos.
    assert train.sources.tolist() == [number // 3 for number in range(24)]
    drawn = set()
    for seed in range(100):
        clip = train.draw(torch.tensor([0]), torch.Generator().manual_seed(seed))[0]
        drawn.add(tuple(shown((clip.movedim(-3, -1) * 255).round().numpy())))
    assert drawn == {tuple(range(start, start + 4)) for start in range(17)}


def test_drawings_of_one_archive_have_different_sources(tmp_path: Path) -> None:
    """Their common path is that of the archive."""
    with zipfile.ZipFile(tmp_path / "strokes_background.zip", "w") as archive:
        for character, drawer in itertools.product((1, 2), range(1, 21)):
            archive.writestr(
                f"strokes_background/Latin/character{character:02d}/000{character}_{drawer:02d}.txt",
                f"START\n10,-{40 * character},0\n{4 * drawer},-50,900\n90,-90,3000\nBREAK\n",
            )
    labelled = open_labelled(tmp_path, reader="omniglot", kind="strokes")
    chosen = replace(comparison_set("strokes"), size=32)
    plan = ComparisonPlan(sets=("strokes",), backbone="small", hidden=8, units=8, frames=4)
    train = PreparedSet(plan, chosen, labelled, None, tmp_path / "work", None).parts(method_named("c3d"))["train"]
    assert train.sources is not None
    assert train.sources.tolist() == list(range(24))
    clips = train.draw(torch.arange(24), torch.Generator().manual_seed(0))
    assert len({clip.numpy().tobytes() for clip in clips}) == 24


def test_only_training_clips_vary(prepared: PreparedSet) -> None:
    parts = prepared.parts(method_named("c3d"))
    starts = [shown(clip.movedim(-3, -1).numpy())[0] for clip in parts["train"].inputs[:3]]
    assert starts == [0, 8, 16]
    assert parts["test"].moving is None
    assert prepared.key.endswith("-moving-10")


def test_heads_are_trained_on_features_of_varying_clips(prepared: PreparedSet) -> None:
    train = prepared.parts(method_named("triplet"))["train"]
    assert train.moving is not None
    assert train.moving.are_features
    schedule = RunSchedule(steps=2, quadlets=4)
    lost = []
    for _ in range(2):
        method = method_named("quadlet")
        model = prepared.new_encoder(method, 0)
        lost.append(train_method(model, method, train, schedule, seed=0).loss)
    assert lost[0] == lost[1]  # the positions only depend on seed and step
