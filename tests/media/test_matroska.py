"""Files whose bytes changed after they were written."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.support.videos import encode, pan
from vidkin.media import find_damage

CLUSTER = b"\x1f\x43\xb6\x75"


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``a.mkv`` has checksums, ``a.webm`` has none; both have several clusters."""
    folder = tmp_path_factory.mktemp("films")
    frames = list(pan("coffee", 60, width=96, height=64))
    encode(folder / "a.mkv", frames, rate=2, options={"g": "10"})
    options = {"deadline": "realtime", "cpu-used": "8", "g": "10"}
    encode(folder / "a.webm", frames, rate=2, codec="libvpx", options=options)
    return folder


@pytest.mark.parametrize("name", ["a.mkv", "a.webm"])
def test_whole_files_and_others_have_no_damage(films: Path, tmp_path: Path, name: str) -> None:
    content = (films / name).read_bytes()
    assert content.count(CLUSTER) > 3  # in the index of the beginning, too
    assert find_damage(films / name, "matroska,webm") == ""
    (tmp_path / "tail").write_bytes(content + b"anything behind the segment")
    assert find_damage(tmp_path / "tail", "matroska,webm") == ""
    for other in (b"", b"\x1a", b"RIFF....AVI ", content[:40]):
        (tmp_path / "other").write_bytes(other)
        assert find_damage(tmp_path / "other", "matroska,webm") == ""


@pytest.mark.parametrize("name", ["a.mkv", "a.webm"])
def test_a_file_that_ends_between_two_clusters_is_cut_off(films: Path, tmp_path: Path, name: str) -> None:
    content = (films / name).read_bytes()
    end = content.rindex(CLUSTER)
    (tmp_path / name).write_bytes(content[:end])
    word = f"the file is cut off: {len(content) - end:,} bytes or more are missing at its end"
    assert find_damage(tmp_path / name, "matroska,webm") == word


@pytest.mark.parametrize("seed", range(12))
def test_one_changed_byte_shows_where_there_are_checksums(films: Path, tmp_path: Path, seed: int) -> None:
    content = bytearray((films / "a.mkv").read_bytes())
    generator = np.random.default_rng(seed)
    first = content.index(CLUSTER, content.index(CLUSTER) + 1)
    place = int(generator.integers(first + 16, content.rindex(CLUSTER)))
    content[place] ^= int(generator.integers(1, 256))
    (tmp_path / "a.mkv").write_bytes(content)
    assert find_damage(tmp_path / "a.mkv", "matroska,webm").startswith("the file is damaged: 1 of about ")


@pytest.mark.parametrize("seed", range(12))
def test_missing_bytes_show_without_checksums(films: Path, tmp_path: Path, seed: int) -> None:
    content = bytearray((films / "a.webm").read_bytes())
    generator = np.random.default_rng(seed)
    places = [place for place in range(len(content)) if content.startswith(CLUSTER, place)]
    begin = int(generator.integers(places[1] + 12, places[-1] - 60))
    del content[begin : begin + int(generator.integers(1, 50))]
    (tmp_path / "a.webm").write_bytes(content)
    assert "parts changed after they were written" in find_damage(tmp_path / "a.webm", "matroska,webm")


def test_what_follows_damage_is_looked_at_again(films: Path, tmp_path: Path) -> None:
    """Two clusters of which each lacks a byte, and whole ones between them."""
    content = bytearray((films / "a.webm").read_bytes())
    places = [place for place in range(len(content)) if content.startswith(CLUSTER, place)]
    for place in (places[-2], places[-5]):
        del content[place + 100]
    (tmp_path / "a.webm").write_bytes(content)
    assert find_damage(tmp_path / "a.webm", "matroska,webm").startswith("the file is damaged: 2 of about ")


def test_a_file_without_lengths_is_checked_block_by_block(films: Path, tmp_path: Path) -> None:
    """As it is sent while it is made: the segment and its clusters do not say how long they are."""
    content = (films / "a.webm").read_bytes()
    head = content.index(b"\x18\x53\x80\x67") + 4
    unknown = b"\x01" + b"\xff" * 7
    live = content[:head] + unknown + content[head + 8 :]
    (tmp_path / "open.webm").write_bytes(live)
    assert find_damage(tmp_path / "open.webm", "matroska,webm") == ""
    place = live.index(CLUSTER, live.index(b"\x16\x54\xae\x6b"))
    first = place
    while place >= 0:
        after = place + 5
        while live[after : after + 1] != b"\xe7":  # the time of the cluster is its first part
            after += 1
        live = live[: place + 4] + unknown + live[after:]
        place = live.find(CLUSTER, place + 4)
    (tmp_path / "live.webm").write_bytes(live)
    assert find_damage(tmp_path / "live.webm", "matroska,webm") == ""
    (tmp_path / "damaged.webm").write_bytes(live[: first + 300] + live[first + 350 :])
    assert find_damage(tmp_path / "damaged.webm", "matroska,webm").startswith("the file is damaged: 1 of about ")
    cut = live[: live.rindex(b"\x1c\x53\xbb\x6b") - 40]
    (tmp_path / "cut.webm").write_bytes(cut)
    assert re.fullmatch(
        r"the file is cut off: \d+ bytes or more are missing at its end",
        find_damage(tmp_path / "cut.webm", "matroska,webm"),
    )


@pytest.mark.parametrize("junk", [CLUSTER + b"\x80\x00", CLUSTER + b"\x80"], ids=["damaged", "empty"])
def test_a_file_of_a_million_clusters_is_done_soon(
    films: Path, tmp_path: Path, junk: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each damaged cluster costs a search for the next one."""
    monkeypatch.setattr("vidkin.media.matroska.MOST_PARTS", 10_000)
    content = (films / "a.webm").read_bytes()
    head = content.index(b"\x18\x53\x80\x67") + 4
    body = content[head + 8 :] + junk * 2**20
    (tmp_path / "a.webm").write_bytes(content[:head] + b"\x01" + len(body).to_bytes(7, "big") + body)
    reads: list[None] = []
    told = find_damage(tmp_path / "a.webm", "matroska,webm", on_read=lambda: reads.append(None))
    assert told == (
        "the file is damaged: more than 1,000 parts changed after they were written, first at 29.5 s"
        if junk.endswith(b"\x00")
        else ""
    )
    assert len(reads) <= 10_000


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"No such file|cannot find"):
        find_damage(tmp_path / "gone.mkv", "matroska,webm")
