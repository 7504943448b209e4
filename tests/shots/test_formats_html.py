"""The contact sheet is a single page with an image for every shot."""

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


def test_one_image_per_shot(tmp_path: Path) -> None:
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


def test_transitions_are_named_with_their_extents(tmp_path: Path) -> None:
    """A dissolve starts the last shot, and a fade at the end of the video starts none."""
    given = detection(cut_video(tmp_path / "film.mp4"))
    dissolve = replace(given.cuts[1], kind="dissolve")
    fade = replace(dissolve, kind="fade", frame=57, time=5.7, start_frame=55, start=5.5, end_frame=59, end=5.9)
    last = replace(given.shots[2], kind="dissolve", transition_start=4.3, transition_end=4.7)
    given = replace(given, cuts=(given.cuts[0], dissolve, fade), shots=(*given.shots[:2], last))
    write_contact_sheet(given, tmp_path / "sheet.html")
    page = (tmp_path / "sheet.html").read_text()
    assert "frames 20 to 44 · hard 0.90</small>" in page
    assert "· dissolve 0.60, 4.30 to 4.70 s · ends with fade 0.60, 5.50 to 5.90 s</small>" in page


def test_missing_video_writes_no_page(tmp_path: Path) -> None:
    with pytest.raises(MediaError):
        write_contact_sheet(detection(tmp_path / "gone.mp4"), tmp_path / "sheet.html")
    assert not (tmp_path / "sheet.html").exists()
