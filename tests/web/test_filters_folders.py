"""The tree of the folders of an index."""

from __future__ import annotations

from vidkin.index import VideoRecord
from vidkin.web.filters import folder_tree


def test_folder_tree_unfolds_to_the_current_folder() -> None:
    records = [
        VideoRecord(path=f"/videos/{name}", size=1, mtime_ns=1, content_hash="")
        for name in ("a/x/1.mp4", "a/x/2.mp4", "a/y/3.mp4", "b/4.mp4", "5.mp4")
    ]
    (top,) = folder_tree(records)
    assert (top.path, top.count) == ("/videos", 5)
    assert [(node.name, node.count, node.has_folders, node.folders) for node in top.folders or ()] == [
        ("a", 3, True, None),
        ("b", 1, False, None),
    ]
    (top,) = folder_tree(records, open_to="/videos/a/y")
    assert [node.path for node in (top.folders or ())[0].folders or ()] == ["/videos/a/x", "/videos/a/y"]
    assert [node.name for node in folder_tree(records, under="/videos/a")] == ["x", "y"]


def test_number_of_shown_folders_is_limited() -> None:
    records = [
        VideoRecord(path=f"/videos/{number:05d}/1.mp4", size=1, mtime_ns=1, content_hash="") for number in range(10_000)
    ]
    (top,) = folder_tree(records)
    assert (len(top.folders or ()), top.more, top.count) == (500, 9500, 10_000)
