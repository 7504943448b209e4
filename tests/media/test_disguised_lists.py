"""A media file never opens another file: disguised playlists are refused before they are read."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.support.opened_files import opened_files
from tests.support.videos import encode, pan
from vidkin.errors import MediaError
from vidkin.media import probe, read_frames

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify tells which files are opened")

Disguise = tuple[str, bytes]


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of videos that the user did not name."""
    folder = tmp_path_factory.mktemp("elsewhere")
    encode(folder / "private.mp4", pan("coffee", 20))
    encode(folder / "private.ts", pan("coffee", 20))
    return folder


def concat(target: Path) -> bytes:
    return f"ffconcat version 1.0\nfile '{target}'\n".encode()


def hls(target: Path) -> bytes:
    return f"#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:5,\n{target}\n#EXT-X-ENDLIST\n".encode()


def endless(target: Path) -> bytes:
    """A live playlist without an end, which players request repeatedly."""
    return f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{target}\n".encode()


def dash(target: Path) -> bytes:
    return (
        '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" '
        'mediaPresentationDuration="PT2S" profiles="urn:mpeg:dash:profile:isoff-on-demand:2011"><Period>'
        '<AdaptationSet mimeType="video/mp4"><Representation id="1" bandwidth="1000" width="192" height="128" '
        f'codecs="avc1.64000b"><BaseURL>{target}</BaseURL></Representation></AdaptationSet></Period></MPD>'
    ).encode()


def imf(target: Path) -> bytes:
    return (
        '<?xml version="1.0"?><CompositionPlaylist xmlns="http://www.smpte-ra.org/schemas/2067-3/2016">'
        f"<Id>urn:uuid:{target}</Id></CompositionPlaylist>"
    ).encode()


def sdp(target: Path) -> bytes:
    return (
        b"v=0\no=- 0 0 IN IP4 127.0.0.1\ns=-\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 96\n"
        b"a=rtpmap:96 H264/90000\n"
    )


REFUSALS = r"this is a list of other files|this is text|this is not a video|no frame can be decoded"
NAMES = ("chain.mp4", "list.m3u8", "index.mpd", "a.ts", "a.jpg", "a.sdp", "CPL.xml", os.fsdecode(b"\xff.mkv"))


@pytest.mark.parametrize("name", NAMES, ids=ascii)
@pytest.mark.parametrize("make", [concat, hls, endless, dash, imf, sdp], ids=lambda make: make.__name__)
def test_list_of_files_opens_none_of_them(
    make: Callable[[Path], bytes], name: str, elsewhere: Path, tmp_path: Path
) -> None:
    path = tmp_path / name
    for target in (elsewhere / "private.mp4", elsewhere / "private.ts"):
        path.write_bytes(make(target))
        with opened_files(elsewhere) as names:
            for read in (probe, read_frames):
                with pytest.raises(MediaError, match=REFUSALS):
                    read(path)
        assert names == []


def test_nested_lists_are_refused_at_the_first(elsewhere: Path, tmp_path: Path) -> None:
    """Ten lists nested to eight levels would be decoded as a hundred million videos."""
    shutil.copy(elsewhere / "private.mp4", tmp_path / "0.mp4")
    for level in range(1, 9):
        lines = "".join(f"file '{level - 1}.mp4'\n" for _ in range(10))
        (tmp_path / f"{level}.mp4").write_text(f"ffconcat version 1.0\n{lines}")
    with opened_files(tmp_path) as names, pytest.raises(MediaError, match="this is a list of other files"):
        read_frames(tmp_path / "8.mp4")
    assert set(names) == {"8.mp4"}


def test_percent_signs_in_image_names_are_literal(tmp_path: Path) -> None:
    from PIL import Image

    for name in ("a0.png", "a1.png", "a%d.png"):
        Image.new("RGB", (96, 64), "red").save(tmp_path / name)
    with opened_files(tmp_path) as names:
        assert len(read_frames(tmp_path / "a%d.png")) == 1
    assert set(names) == {"a%d.png"}


def test_plane_of_an_image_does_not_open_the_other_planes(tmp_path: Path) -> None:
    for name in ("a.Y", "a.U", "a.V"):
        (tmp_path / name).write_bytes(np.random.default_rng(0).bytes(352 * 288))
    with opened_files(tmp_path) as names, pytest.raises(MediaError, match=REFUSALS):
        read_frames(tmp_path / "a.Y")
    assert set(names) == {"a.Y"}


def test_a_video_opens_no_other_file(elsewhere: Path) -> None:
    with opened_files(elsewhere) as names:
        assert len(read_frames(elsewhere / "private.mp4", rate=None)) == 20
    assert set(names) == {"private.mp4"}
