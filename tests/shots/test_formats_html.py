"""The contact sheet: one page, a picture for every shot."""

from __future__ import annotations

import base64
import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from tests.support.detections import cut_video, detection
from vidkin.errors import MediaError
from vidkin.shots import write_contact_sheet


def test_a_picture_a_shot(tmp_path: Path) -> None:
    film = cut_video(tmp_path / "a & <b>.mp4")
    write_contact_sheet(detection(film), tmp_path / "sheet.html", short_side=64)
    page = (tmp_path / "sheet.html").read_text()
    assert "<h1>a &amp; &lt;b&gt;.mp4</h1>" in page
    assert "Shots: 3, transitions: 2" in page
    pictures = re.findall(r'src="data:image/jpeg;base64,([^"]+)"', page)
    assert [Image.open(io.BytesIO(base64.b64decode(text))).size for text in pictures] == [(96, 64)] * 3
    assert "<b>2</b> 2.00 to 4.50 s" in page
    assert "frames 20 to 44 · gradual 0.90" not in page
    assert "gradual 0.60" in page
    assert 'src="http' not in page


def test_types_are_named(tmp_path: Path) -> None:
    given = detection(cut_video(tmp_path / "film.mp4"))
    given = replace(given, cuts=(given.cuts[0], replace(given.cuts[1], kind="dissolve")))
    write_contact_sheet(given, tmp_path / "sheet.html")
    assert "dissolve 0.60" in (tmp_path / "sheet.html").read_text()


def test_a_video_that_is_gone_leaves_no_page(tmp_path: Path) -> None:
    with pytest.raises(MediaError):
        write_contact_sheet(detection(tmp_path / "gone.mp4"), tmp_path / "sheet.html")
    assert not (tmp_path / "sheet.html").exists()
