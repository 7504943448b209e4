"""Control characters, which file names may hold and files for other programs should not."""

from __future__ import annotations

import unicodedata

__all__ = ["replace_controls"]


def replace_controls(text: str) -> str:
    """The text with a replacement character for each control character; everything else as it is.

    >>> replace_controls("a\\x1b[2Jb")
    'a�[2Jb'
    """
    return "".join("�" if unicodedata.category(char) == "Cc" else char for char in text)
