"""Relevance of the clips in a batch, and labels of their frames."""

from __future__ import annotations

import torch

from vidkin.training import ClipFeatures
from vidkin.training.clip_data import make_batch


def clip(
    length: int,
    *,
    windows: tuple[int, ...],
    videos: tuple[int, ...],
    sources: list[int] | None = None,
    lent: tuple[tuple[int, int], ...] = (),
) -> ClipFeatures:
    shown = list(range(length)) if sources is None else sources
    return ClipFeatures(torch.full((length, 2, 3), 0.5), torch.tensor(shown), windows, videos, lent)


def test_short_clips_are_padded_with_zeros() -> None:
    batch = make_batch([clip(2, windows=(0,), videos=(0,)), clip(4, windows=(1,), videos=(1,))])
    assert batch.values.shape == (2, 4, 2, 3)
    assert batch.lengths.tolist() == [2, 4]
    assert not batch.values[0, 2:].any()
    assert batch.labeled.tolist() == [[True, True, False, False], [True] * 4]
    assert batch.teacher is None


def test_relevance_depends_on_window_and_video() -> None:
    batch = make_batch(
        [
            clip(1, windows=(0,), videos=(0,)),
            # Another view of the same window.
            clip(1, windows=(0,), videos=(0,)),
            # Another window of the same video is ignored.
            clip(1, windows=(1,), videos=(0,), sources=[9]),
            # A window of another video.
            clip(1, windows=(2,), videos=(1,)),
        ]
    )
    assert batch.relevance.tolist() == [[1, 1, -1, 0], [1, 1, -1, 0], [-1, -1, 1, 0], [0, 0, 0, 1]]
    assert batch.same_window.tolist() == [
        [True, True, False, False],
        [True, True, False, False],
        [False, False, True, False],
        [False, False, False, True],
    ]


def test_clip_with_an_inset_is_relevant_to_both_videos() -> None:
    batch = make_batch(
        [
            clip(1, windows=(0, 2), videos=(0, 1), lent=((0, 4),)),
            clip(1, windows=(2,), videos=(1,)),
            clip(1, windows=(3,), videos=(1,), sources=[4]),
            clip(1, windows=(4,), videos=(2,)),
        ]
    )
    assert batch.relevance[0].tolist() == [1, 1, -1, 0]
    assert batch.same_window[0].tolist() == [True, False, False, False]


def test_views_of_one_window_are_positives_only_if_they_share_a_quarter_of_their_frames() -> None:
    first = clip(8, windows=(0,), videos=(0,))
    shares_two = clip(8, windows=(0,), videos=(0,), sources=[*range(6, 14)])
    shares_one = clip(8, windows=(0,), videos=(0,), sources=[*range(7, 15)])
    # Noise frames do not count, and a slow view shows each frame twice.
    covered = clip(4, windows=(0,), videos=(0,), sources=[-1, -1, 20, 21])
    slow = clip(4, windows=(0,), videos=(0,), sources=[7, 7, 8, 8])
    nothing = clip(2, windows=(0,), videos=(0,), sources=[-1, -1])
    batch = make_batch([first, shares_two, shares_one, covered, slow, nothing])
    assert batch.relevance[0].tolist() == [1, 1, -1, -1, 1, -1]
    assert batch.same_window[0].tolist() == [True, True, False, False, True, False]
    assert batch.relevance.diagonal().tolist() == [1] * 6
    assert torch.equal(batch.relevance, batch.relevance.T)


def test_covered_frames_have_no_label_and_teacher_embeddings_follow_the_source_frames() -> None:
    vectors = torch.eye(5)
    first = clip(3, windows=(0,), videos=(0,), sources=[4, -1, 2])
    second = clip(1, windows=(1,), videos=(1,), sources=[0])
    batch = make_batch([first, second], [vectors, 2 * vectors])
    assert batch.labeled.tolist() == [[True, False, True], [True, False, False]]
    assert batch.teacher is not None
    assert batch.teacher[0, 0].tolist() == [0, 0, 0, 0, 1]
    assert batch.teacher[0, 2].tolist() == [0, 0, 1, 0, 0]
    assert batch.teacher[1, 0].tolist() == [2, 0, 0, 0, 0]
    assert not batch.teacher[1, 1:].any()


def test_all_tensors_of_a_batch_move_to_the_device() -> None:
    batch = make_batch([clip(1, windows=(0,), videos=(0,))], [torch.eye(2)])
    moved = batch.to(torch.device("cpu"))
    assert torch.equal(moved.values, batch.values)
    assert moved.teacher is not None
    assert make_batch([clip(1, windows=(0,), videos=(0,))]).to(torch.device("cpu")).teacher is None
