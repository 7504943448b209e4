"""Groups of duplicates as a self-contained page."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path

import numpy as np
from PIL import Image

from tests.support.labelled import counting_clip
from tests.support.videos import encode
from vidkin.files import Finding
from vidkin.index import DuplicateGroup, DuplicateMember, Traits
from vidkin.rendering.duplicates import write_duplicate_page


def member(path: Path, *, best: bool = False, **facts: object) -> DuplicateMember:
    given = {"size": 1500, "compared_with": None if best else "best", **facts}
    return DuplicateMember(str(path), 0.9, 64, 48, 2.0, best=best, **given)  # type: ignore[arg-type]


def pictures(page: str) -> list[np.ndarray]:
    data = re.findall(r"data:image/jpeg;base64,([A-Za-z0-9+/=]+)", page)
    return [np.asarray(Image.open(io.BytesIO(base64.b64decode(item)))) for item in data]


def test_duplicates_page_shows_three_frames_of_every_file(tmp_path: Path) -> None:
    clip = counting_clip(tmp_path / "clip & <b>.mp4", 20)
    best = member(clip, best=True, traits=Traits(50.0), links=("/other/name & co.mp4",))
    lost = tuple(Finding("picture", f"0:0{second}.0-0:0{second}.5 shows <others>") for second in range(3))
    doubtful = member(clip, doubt="; ".join(one.text for one in lost), findings=lost, traits=Traits(25.0, date="2020"))
    spare = [member(clip), member(clip, kept_by=str(clip), size=3000)]
    group = DuplicateGroup((best, doubtful, *spare), "most detail")
    steps: list[tuple[int, int]] = []
    write_duplicate_page(
        [group, group], tmp_path / "page.html", short_side=32, on_progress=lambda *step: steps.append(step)
    )
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert steps == [(1, 2), (2, 2)]
    removable = "3.0 kB can be removed without loss, 1.5 kB may be removable"
    assert f"<h2>Group 2: {removable}</h2>" in page
    assert (
        "2 groups, 6 copies besides the best ones; 6.0 kB can be removed without loss, 3.0 kB may be removable." in page
    )
    assert "freed" not in page
    assert "clip &amp; &lt;b&gt;.mp4" in page
    assert "<b>" not in page
    assert "keep (most detail)" in page
    assert '<span class="doubt">copy of best, doubtful</span>' in page
    assert page.count("<li>0:02.0-0:02.5 shows &lt;others&gt;</li>") == 2
    assert "score 0.90, 64x48, 0:02.0, 1.5 kB, 25 frames per second, date: 2020</small>" in page
    assert "1.5 kB, also named /other/name &amp; co.mp4, 50 frames per second, no date</small>" in page
    shown = pictures(page)
    assert len(shown) == 24
    assert shown[0].shape == (32, 43, 3)
    # Frames at 0.3, 1 and 1.7 s of a clip that gets brighter by 10 with each of 10 frames per second.
    assert [round((float(image.mean()) - 20) / 10) for image in shown[:3]] == [3, 10, 17]


def test_duplicates_page_shows_the_cause_for_an_unreadable_file(tmp_path: Path) -> None:
    gone = DuplicateGroup((member(tmp_path / "gone.mp4", best=True), member(tmp_path / "too.mp4")))
    write_duplicate_page([gone], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("<small>there is no such file</small>") == 2
    assert pictures(page) == []
    assert page.endswith("</body></html>\n")


def test_mirrored_copies_are_flipped_back(tmp_path: Path) -> None:
    half = np.zeros((4, 48, 64, 3), np.uint8)
    half[:, :, :32] = 255
    clip = encode(tmp_path / "half.mp4", half, rate=2)
    group = DuplicateGroup((member(clip, best=True), member(clip, mirrored=True)))
    write_duplicate_page([group], tmp_path / "page.html", short_side=24)
    shown = pictures((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert [bool(image[:, :10].mean() > 200) for image in shown] == [True] * 3 + [False] * 3
