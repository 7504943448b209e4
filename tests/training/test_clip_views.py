"""Views of windows of unlabeled videos, and their settings."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from vidkin.errors import InvalidArgumentError
from vidkin.features import open_extractor
from vidkin.training import Window
from vidkin.training.clip_footage import VideoSquares, cut_windows, read_squares
from vidkin.training.clip_views import ClipSettings, ViewMaker, clip_settings, store_views, teacher_vectors

SMALL = ClipSettings(rate=5.0, window=8, length=8, side=32, views=2)


def read(folder: Path) -> list[VideoSquares]:
    return read_squares([folder], rate=5.0, side=32, cache=None)[0]


def test_default_settings_are_the_published_ones_and_can_be_changed_by_nested_tables() -> None:
    assert clip_settings({}) == ClipSettings()
    changed = clip_settings({"views": 3, "strong": {"inset": 0, "temporal": {"dropped": 0.5}}})
    assert (changed.views, changed.strong.inset, changed.strong.temporal.dropped) == (3, 0.0, 0.5)
    assert changed.strong.captions == ClipSettings().strong.captions
    assert clip_settings(json.loads(json.dumps(asdict(changed)))) == changed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 3}, r"\[data.options\] has no setting size; choose from rate, window"),
        ({"strong": {"loud": 1}}, r"\[data.options.strong\] has no setting loud"),
        ({"strong": {"temporal": 3}}, r"\[data.options.strong.temporal\] must be a table of settings, got 3"),
        ({"length": 3}, "length must be at least 4, got 3"),
        ({"rate": 0}, "rate must be above 0, got 0"),
    ],
)
def test_invalid_settings_are_rejected(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        clip_settings(options)


class TestViews:
    def maker(self, footage: Path) -> tuple[ViewMaker, list[Window]]:
        videos = read(footage)
        return ViewMaker(videos, SMALL, open_extractor("squares", device="cpu"), 3), cut_windows(videos, 8)

    def test_depend_only_on_seed_window_and_number(self, footage: Path) -> None:
        maker, windows = self.maker(footage)
        views = [maker.describe(maker.edit(windows[2], number, windows[4:])) for number in (0, 1, 1, 3)]
        assert torch.equal(views[1].values, views[2].values)
        assert not torch.equal(views[1].values, views[3].values)
        assert views[0].windows == (2,)
        assert views[0].videos == (1,)
        # Source frames are counted from the start of the video, which has windows 2 and 3.
        assert views[0].sources.tolist() == list(range(8))
        other = maker.describe(maker.edit(windows[3], 0, windows[4:]))
        assert other.sources.tolist() == list(range(8, 16))

    def test_list_the_videos_shown_as_insets(self, footage: Path) -> None:
        maker, windows = self.maker(footage)
        edited = [maker.edit(windows[0], number, windows[4:6]) for number in range(1, 120, 2)]
        assert {donor.number for clip in edited for donor in clip.donors} == {4, 5}
        alone = [clip for clip in edited if not clip.donors]
        assert 28 <= len(alone) <= 56
        shown = next(clip for clip in edited if clip.donors)
        described = maker.describe(shown)
        assert described.windows == (0, *(donor.number for donor in shown.donors))
        # A donor is visible from its first frame to the end of the view.
        assert described.lent == tuple((donor.start, donor.start + len(shown.view.frames)) for donor in shown.donors)

    def test_windows_are_shifted_within_their_video(self, footage: Path) -> None:
        maker, windows = self.maker(footage)
        moved = [maker.move(windows[2], number) for number in range(40)]
        assert {window.start for window in moved} == set(range(5))
        assert all((window.number, window.video, window.stop) == (2, 1, window.start + 8) for window in moved)
        assert {maker.move(windows[3], number).start for number in range(40)} == set(range(4, 9))
        whole = cut_windows(maker.videos, 99)[0]
        assert maker.move(whole, 5) == whole

    def test_are_stored_and_reused(self, footage: Path, tmp_path: Path) -> None:
        maker, windows = self.maker(footage)
        views = store_views(windows, maker, cache=tmp_path, most_bytes=2**30)
        assert {number: len(kept) for number, kept in views.items()} == dict.fromkeys(range(12), 3)
        again = store_views(windows, maker, cache=tmp_path, most_bytes=2**30)
        for number, kept in views.items():
            for first, second in zip(kept, again[number], strict=True):
                assert torch.equal(first.values, second.values)
                assert (first.windows, first.sources.tolist()) == (second.windows, second.sources.tolist())
                assert (first.videos, first.lent) == (second.videos, second.lent)
        # Inserted footage comes from another video.
        assert all(view.videos[0] not in view.videos[1:] for kept in views.values() for view in kept)
        with pytest.raises(InvalidArgumentError, match=r"more than\s+data.memory"):
            store_views(windows, maker, cache=None, most_bytes=1000)

    def test_teacher_vectors_describe_unedited_frames(self, footage: Path, tmp_path: Path) -> None:
        videos = read(footage)
        teacher = open_extractor("classical")
        vectors = teacher_vectors(videos, teacher, cache=tmp_path)
        assert [len(rows) for rows in vectors] == [16] * 6
        torch.testing.assert_close(vectors[0].norm(dim=1), torch.ones(16))
        again = teacher_vectors(videos, teacher, cache=tmp_path)
        assert all(map(torch.equal, vectors, again))
