"""A single network for all transitions: data generation, training on little data, and its file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.support.videos import encode, pan, photograph
from vidkin.features.sessions import open_session, run_session
from vidkin.shots import DetectedCut, KnownCutsDetector
from vidkin.shots.network import CONTEXT as USED_CONTEXT
from vidkin.shots.network import SHIPPED, Numbers
from vidkin_research.cut_network.drawn import Pool, targets
from vidkin_research.cut_network.export import export_network
from vidkin_research.cut_network.judge import build_held_back, build_judged, judge, score_pieces, show
from vidkin_research.cut_network.material import Sources, join_fades, prepare
from vidkin_research.cut_network.network import CONTEXT, CutNetwork, Measures
from vidkin_research.cut_network.pieces import Join, Piece, read_pieces, write_pieces
from vidkin_research.cut_network.train import CHECKPOINT, STORED, Recipe, load_network, train

LOW = replace(Numbers.load(SHIPPED), hard=0.5, gradual=0.6)


def answers_of(network: CutNetwork, piece: Piece) -> np.ndarray:
    with torch.no_grad():
        return network.probabilities(torch.from_numpy(piece.luma)[None], torch.from_numpy(piece.chroma)[None])[
            0
        ].numpy()


def still(count: int, seed: int, joins: tuple[Join, ...] = ()) -> Piece:
    random = np.random.default_rng(seed)
    luma = np.repeat(random.integers(0, 256, (1, 8, 16)).repeat(4, 1).repeat(4, 2), count, 0)
    chroma = np.repeat(random.integers(90, 166, (1, 2, 4, 8)).repeat(4, 2).repeat(4, 3), count, 0)
    return Piece(luma.astype(np.uint8), chroma.astype(np.uint8), joins)


def join_pieces(*parts: Piece) -> Piece:
    luma, chroma = (np.concatenate([getattr(part, name) for part in parts]) for name in ("luma", "chroma"))
    return Piece(luma, chroma)


def stills() -> Pool:
    return Pool({"stills": [still(40, seed) for seed in range(20)]}, {"stills": 1.0})


def test_transitions_move_with_the_selected_frames() -> None:
    piece = still(40, 0, (Join("hard", 10, 10), Join("wipe", 20, 29), Join("fade", 35, 36)))
    assert piece.pick(np.arange(5, 40)).joins == (Join("hard", 5, 5), Join("wipe", 15, 24), Join("fade", 30, 31))
    # Keeps every second frame, of which one is in the fade.
    assert piece.pick(np.arange(0, 40, 2)).joins == (Join("hard", 5, 5), Join("wipe", 10, 14), Join("cut", 18, 18))
    assert piece.pick(np.arange(80) // 2).joins == (Join("hard", 20, 20), Join("wipe", 40, 59), Join("fade", 70, 73))
    assert piece.reverse().joins == (Join("fade", 3, 4), Join("wipe", 10, 19), Join("hard", 30, 30))
    assert piece.shots(6) == [(0, 10), (10, 10)]


def test_two_fades_with_black_in_between_are_merged() -> None:
    piece = still(60, 0, (Join("fade", 10, 19), Join("fade", 30, 39), Join("cut", 50, 50), Join("cut", 53, 53)))
    piece.luma[20:30] = piece.luma[50:53] = 0
    assert join_fades(piece).joins == (Join("fade", 10, 39), Join("fade", 50, 52))
    assert join_fades(Piece(still(60, 0).luma, piece.chroma, piece.joins)).joins == piece.joins


def test_clips_are_read_as_they_were_written(tmp_path: Path) -> None:
    pieces = [still(5, 0), still(9, 1, (Join("jump", 4, 4),))]
    write_pieces(tmp_path / "some.npz", pieces)
    again = read_pieces(tmp_path / "some.npz")
    assert [len(piece) for piece in again] == [5, 9]
    assert again[1].joins == pieces[1].joins
    assert np.array_equal(again[1].luma, pieces[1].luma)


@pytest.mark.parametrize("spliced", [0.0, 1.0], ids=["parts in a row", "new transitions"])
def test_generated_sequences_change_at_their_labels(spliced: float) -> None:
    pool = Pool({"stills": [still(60, seed) for seed in range(12)]}, {"stills": 1.0})
    kinds = set()
    for seed in range(30):
        piece = pool.draw(150, np.random.default_rng(seed), spliced=spliced)
        assert len(piece) == 150
        wanted = targets(piece)
        changes = np.abs(np.diff(piece.luma.astype(float), axis=0)).mean((1, 2))
        for frame in np.flatnonzero(changes > 12) + 1:  # more than noise
            assert wanted[max(0, frame - 2) : frame + 2, [0, 2]].any()
        for kind, start, end in piece.joins:
            kinds.add(kind)
            assert 0 <= start <= end < 150
    assert kinds >= ({"hard"} if spliced == 0.0 else {"hard", "dissolve", "fade", "wipe"})
    again = pool.draw(150, np.random.default_rng(29), spliced=spliced)
    assert np.array_equal(again.luma, piece.luma)


@pytest.mark.parametrize("event", ["lit", "dips", "titles"])
def test_lights_dips_and_titles_within_a_shot_change_frames_but_not_labels(event: str) -> None:
    pool = Pool({"stills": [still(60, seed) for seed in range(12)]}, {"stills": 1.0})
    changed = 0
    for seed in range(20):
        plain = pool.draw(150, np.random.default_rng(seed), spliced=0.0)
        piece = pool.draw(150, np.random.default_rng(seed), spliced=0.0, **{event: 1.0})
        assert piece.joins == plain.joins
        planes = piece.luma.astype(float), piece.chroma.astype(float)
        steps = sum(np.abs(np.diff(rows, axis=0)).reshape(149, -1).mean(1) for rows in planes)
        labels = targets(piece)[1:, 0] > 0
        changed += int(((steps > 12) & ~labels).sum())
    assert changed > 20


def test_slides_are_cut_where_their_text_changes(tmp_path: Path) -> None:
    (stored,) = prepare(Sources(), tmp_path, share=0.1, groups=("slides",))
    pieces = read_pieces(stored)
    assert sum(len(piece.joins) for piece in pieces) > 2
    for piece in pieces:
        steps = set((np.flatnonzero(np.diff(piece.luma.astype(float), axis=0).any((1, 2))) + 1).tolist())
        assert {join.start for join in piece.joins} <= steps


def test_whip_pans_move_the_whole_frame_and_only_cuts_are_labeled(recordings: Sources, tmp_path: Path) -> None:
    (stored,) = prepare(recordings, tmp_path, share=0.1, groups=("whips",))
    pieces = read_pieces(stored)
    assert len(pieces) == 10
    assert {join.kind for piece in pieces for join in piece.joins} == {"cut"}
    unlabeled = labeled = 0
    for piece in pieces:
        steps = set((np.flatnonzero(np.abs(np.diff(piece.luma.astype(float), axis=0)).mean((1, 2)) > 12) + 1).tolist())
        cuts = {join.start for join in piece.joins}
        labeled += len(cuts & steps)
        unlabeled += len(steps - cuts)
    assert labeled > 5
    assert unlabeled > 20


def test_later_segments_of_changing_shots_are_jumps() -> None:
    """Moving stripes, in a short and in a long shot."""
    across, groups = np.arange(64, dtype=np.float32), {}
    for count in (45, 500):
        stripes = 128 + 100 * np.sin(across / 5 + np.arange(count, dtype=np.float32)[:, None] / 12)
        luma = np.repeat(stripes[:, None], 32, 1).astype(np.uint8)
        groups[str(count)] = [Piece(luma, np.full((count, 2, 16, 32), 128, np.uint8))]
    pool = Pool(groups, dict.fromkeys(groups, 1.0))
    drawn = [pool.draw(250, np.random.default_rng(seed), spliced=1.0) for seed in range(100)]
    assert all(len(piece) == 250 for piece in drawn)
    assert sum(join.kind == "jump" for piece in drawn for join in piece.joins) > 20


def test_features_of_mirrored_frames_are_mirrored() -> None:
    random = np.random.default_rng(0)
    luma = torch.from_numpy(random.integers(0, 256, (1, 20, 32, 64), np.uint8))
    chroma = torch.from_numpy(random.integers(0, 256, (1, 20, 2, 16, 32), np.uint8))
    measures = Measures()
    one, other = measures(luma, chroma), measures(luma.flip(-1, -2), chroma.flip(-1, -2))
    assert torch.allclose(one.rows, other.rows, atol=1e-3)
    assert torch.allclose(one.maps, other.maps.flip(-1, -2), atol=1e-4)


@pytest.fixture(scope="module")
def trained_network(tmp_path_factory: pytest.TempPathFactory) -> tuple[CutNetwork, Path]:
    """A small network trained on cuts between still frames."""
    pool = stills()
    recipe = Recipe(steps=60, batch=3, length=48, width=16, held=8, new=1, average=0.8, spliced=0.0, shares={})
    work = tmp_path_factory.mktemp("learned")
    return train(pool, recipe, work), work


def test_network_learns_cuts_from_little_data(trained_network: tuple[CutNetwork, Path]) -> None:
    network, work = trained_network
    pieces = [still(30, 100), join_pieces(still(20, 101), still(30, 102), still(20, 103))]
    pieces[1] = Piece(pieces[1].luma, pieces[1].chroma, (Join("hard", 20, 20), Join("hard", 50, 50)))
    assert score_pieces(network, pieces, LOW).startswith("F1 1.000 (2, 0, 0)")
    assert score_pieces(CutNetwork(16), pieces) != score_pieces(network, pieces)
    stored = load_network(work / CHECKPOINT)
    assert score_pieces(stored, pieces) == score_pieces(network, pieces)


def test_training_continues_from_an_existing_network(trained_network: tuple[CutNetwork, Path], tmp_path: Path) -> None:
    pool = Pool({"stills": [still(40, seed) for seed in range(20)]}, {"stills": 1.0})
    recipe = Recipe(
        steps=2, batch=2, length=48, width=16, held=4, new=1, average=0.0, rate=1e-5, spliced=0.0, shares={}
    )
    further = train(pool, recipe, tmp_path, start=trained_network[0])
    piece = join_pieces(still(20, 101), still(30, 102))
    answers = [answers_of(network, piece)[:, 0] for network in (trained_network[0], further)]
    assert np.abs(answers[0] - answers[1]).max() < 0.05
    assert not np.array_equal(*answers)


def test_training_stops_at_its_time_limit(tmp_path: Path) -> None:
    recipe = Recipe(steps=10**6, minutes=1e-9, batch=2, length=48, width=16, held=4, new=1, spliced=0.0, shares={})
    done: list[int] = []
    train(stills(), recipe, tmp_path, on_step=lambda step, _: done.append(step))
    assert done == [1]


def answer(path: Path, piece: Piece) -> np.ndarray:
    session = open_session(path)
    return np.asarray(run_session(session, None, {"luma": piece.luma[None], "chroma": piece.chroma[None]})[0][0])


def test_exported_network_gives_the_same_outputs(trained_network: tuple[CutNetwork, Path], tmp_path: Path) -> None:
    exported = export_network(trained_network[0], tmp_path / "cuts.onnx", numbers=LOW, provenance={"steps": 60})
    assert Numbers.load(exported) == LOW
    for count in (1, 2, 90):
        piece = join_pieces(still(count, 1), still(count, 2))
        one, other = answer(exported, piece), answers_of(trained_network[0], piece)
        assert one.shape == (2 * count, 8)
        assert np.allclose(one, other, atol=0.05, rtol=0.05)


def test_shipped_network_equals_the_stored_one() -> None:
    assert CONTEXT == USED_CONTEXT
    piece = join_pieces(still(30, 1), still(30, 2), still(30, 3))
    assert np.allclose(answer(SHIPPED, piece), answers_of(load_network(STORED), piece), atol=0.05, rtol=0.05)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    """Four takes and two photographs."""
    folder = tmp_path_factory.mktemp("recordings")
    takes = [
        encode(folder / f"{name}.mp4", pan(name, 60, width=96, height=64), rate=25)
        for name in ("coffee", "rocket", "chelsea", "astronaut")
    ]
    photographs = [folder / "brick.png", folder / "grass.png"]
    for path in photographs:
        Image.fromarray(photograph(path.stem)).save(path)
    return Sources(takes, photographs)


def test_training_data_is_composed_once(recordings: Sources, tmp_path: Path) -> None:
    groups = ("takes", "films", "mixed", "little")
    stored = prepare(recordings, tmp_path, share=0.01, groups=groups)
    assert [path.stem for path in stored] == list(groups)
    pieces = {path.stem: read_pieces(path) for path in stored}
    assert [len(piece) for piece in pieces["takes"]] == [60] * 4
    assert all(piece.joins == () for piece in pieces["takes"])
    assert len(pieces["films"][0]) == 240
    times = [path.stat().st_mtime_ns for path in stored]
    assert prepare(recordings, tmp_path, share=0.01, groups=groups) == stored
    assert [path.stat().st_mtime_ns for path in stored] == times


def test_held_out_videos_are_composed_of_the_test_split(recordings: Sources, tmp_path: Path) -> None:
    (tmp_path / "videos").mkdir()
    (tmp_path / "photos" / "some").mkdir(parents=True)
    for name, path in zip(("pig-1", "pig-2", "rabbit-1", "walk-1"), recordings.clips, strict=True):
        (tmp_path / "videos" / f"{name}.mp4").write_bytes(path.read_bytes())
    for number in range(11):  # every fifth video is held out
        path = recordings.photographs[number % 2]
        (tmp_path / "photos" / "some" / f"{number:02d}.png").write_bytes(path.read_bytes())
    videos = build_held_back(tmp_path, tmp_path / "work", share=0.01, families=("hard", "push", "single take"))
    assert [video.group for video in videos] == [
        *("families", "families held back", "nothing: single take", "films of cuts", "films"),
        *["nothing: single takes"] * 3,
    ]
    assert [bool(video.labels) for video in videos[:3]] == [True, True, False]


def test_detectors_are_evaluated_on_the_content_of_the_videos(recordings: Sources, tmp_path: Path) -> None:
    videos = build_judged(recordings, tmp_path, share=0.1, families=("hard", "single take"))
    assert {video.group for video in videos} == {
        *("calm", "calm: single take", "restless", "restless: single take"),
        *("films", "cuts", "mixed", "single takes"),
    }
    calm = [video for video in videos if video.group == "calm"]
    rows = judge(calm, lambda: KnownCutsDetector([DetectedCut(calm[0].labels[0].start)]))
    assert rows["all"]["right, false, missed"] == [1, 0, 0]
    assert "F1 1.000" in show(rows)[0]
    takes = [video for video in videos if video.group == "single takes"]
    rows = judge(takes, lambda: KnownCutsDetector([DetectedCut(7)]))
    assert show(rows)[0].endswith(f"{len(takes)} false of {len(takes)}")
