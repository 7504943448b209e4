"""Video and image file extensions."""

from __future__ import annotations

from vidkin._base.files import IMAGE_EXTENSIONS, VIDEO_EXTENSIONS


def test_extensions_are_lowercase_start_with_a_dot_and_belong_to_one_kind() -> None:
    for extension in VIDEO_EXTENSIONS | IMAGE_EXTENSIONS:
        assert extension == extension.lower()
        assert extension.startswith(".")
        assert extension.count(".") == 1
    assert not VIDEO_EXTENSIONS & IMAGE_EXTENSIONS


def test_common_extensions_are_recognized() -> None:
    assert {".mp4", ".mkv", ".mov", ".webm", ".avi", ".mts", ".3gp", ".gif"} <= VIDEO_EXTENSIONS
    assert {".jpg", ".jpeg", ".png", ".webp", ".tif"} <= IMAGE_EXTENSIONS
