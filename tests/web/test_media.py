"""Thumbnails are shown and files are served for indexed videos only."""

from __future__ import annotations

import io
import os
from base64 import b64decode
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

from tests.support.videos import encode, pan
from tests.web.conftest import Connect, Library, finish_job, number_of
from vidkin.errors import MediaError
from vidkin.index import Index, SerialExecutor
from vidkin.media import picture_html, poster, probe, thumbnail


def test_thumbnail_shows_the_frame_at_its_time(library: Library, client: TestClient) -> None:
    coffee = number_of(client, "coffee.mp4")
    answer = client.get(f"/videos/{coffee}/thumbnail", params={"time": 5.04, "side": 128})
    assert answer.headers["content-type"] == "image/webp"
    assert "max-age" in answer.headers["cache-control"]
    shown = np.asarray(Image.open(io.BytesIO(answer.content))).astype(int)
    right = thumbnail(library.folder / "coffee.mp4", 5.0, short_side=180).astype(int)
    assert shown.shape == right.shape == (128, 192, 3)  # never larger than the video
    assert np.abs(shown - right).mean() < 6
    later = client.get(f"/videos/{coffee}/thumbnail?time=11.9")
    assert later.status_code == 200
    assert later.content != answer.content
    assert client.get(f"/videos/{coffee}/thumbnail?time=500").content == later.content  # the end


def test_poster_avoids_a_black_frame(tmp_path: Path, connect: Connect) -> None:
    """The video is black for 0.45 of its length, so neither its beginning nor the frame at one third shows anything."""
    pictures = list(pan("coffee", 60))
    pictures[:27] = [np.zeros_like(pictures[0])] * 27
    encode(tmp_path / "late.mp4", pictures)
    encode(tmp_path / "black.mp4", [np.zeros_like(pictures[0])] * 20)
    with Index.open(tmp_path / "c.vidkin", extractor="classical", create=True) as index:
        index.add(tmp_path, executor=SerialExecutor(index.worker_spec))
    client = connect(tmp_path / "c.vidkin")
    shown = {}
    for name in ("late.mp4", "black.mp4"):
        answer = client.get(f"/videos/{number_of(client, name)}/thumbnail")
        shown[name] = np.asarray(Image.open(io.BytesIO(answer.content))).astype(int)
    right = thumbnail(tmp_path / "late.mp4", 3.0).astype(int)  # the middle
    assert np.abs(shown["late.mp4"] - right).mean() < 6
    assert shown["black.mp4"].mean() < 5


def test_poster_search_continues_after_five_white_frames(tmp_path: Path, connect: Connect) -> None:
    pictures = list(pan("coffee", 60))
    white = np.full_like(pictures[0], 255)
    encode(tmp_path / "early.mp4", [picture if 3 <= place < 9 else white for place, picture in enumerate(pictures)])
    # No frame shows anything, so the poster is a gray title card rather than a white frame.
    gray = np.full_like(white, 140)
    encode(tmp_path / "plain.mp4", [gray if place >= 52 else white for place in range(60)])
    with Index.open(tmp_path / "c.vidkin", extractor="classical", create=True) as index:
        index.add(tmp_path, executor=SerialExecutor(index.worker_spec))
    client = connect(tmp_path / "c.vidkin")
    shown = {}
    for name in ("early.mp4", "plain.mp4"):
        answer = client.get(f"/videos/{number_of(client, name)}/thumbnail")
        shown[name] = np.asarray(Image.open(io.BytesIO(answer.content))).astype(int)
    assert np.abs(shown["early.mp4"] - thumbnail(tmp_path / "early.mp4", 0.6).astype(int)).mean() < 6  # at 0.1
    assert np.abs(shown["plain.mp4"] - 140).mean() < 6  # at 0.9 of its length
    # A notebook shows the same moments.
    address = picture_html(str(tmp_path / "plain.mp4"), None)
    picture = Image.open(io.BytesIO(b64decode(address.partition("base64,")[2].partition('"')[0])))
    assert np.abs(np.asarray(picture.convert("RGB")).astype(int) - 140).mean() < 6


def test_poster_of_a_truncated_file_is_the_last_readable_frame(tmp_path: Path) -> None:
    gray = np.full((64, 96, 3), 100, np.uint8)
    path = encode(tmp_path / "short.mp4", [gray] * 30)
    # The file lasts 3 s instead of the given 7 s: it has the frame at one third of them, but not the middle.
    assert np.abs(poster(path, 7.0).astype(int) - 100).max() < 6
    with pytest.raises(MediaError, match="short"):
        poster(path, 70.0)


def test_unreadable_video_has_no_thumbnail(client: TestClient) -> None:
    answer = client.get(f"/videos/{number_of(client, 'broken.mp4')}/thumbnail")
    assert answer.status_code == 422
    assert "broken.mp4" in answer.json()["detail"]


def test_file_is_served_whole_or_in_ranges(library: Library, client: TestClient) -> None:
    address = f"/videos/{number_of(client, 'coffee.mp4')}/file"
    content = (library.folder / "coffee.mp4").read_bytes()
    size = len(content)
    whole = client.get(address)
    assert (whole.status_code, whole.content) == (200, content)
    assert whole.headers["content-type"] == "video/mp4"
    assert whole.headers["accept-ranges"] == "bytes"
    for asked, piece in (
        ("bytes=0-99", content[:100]),
        ("bytes=100-", content[100:]),
        ("bytes=-50", content[-50:]),
        ("bytes=0-", content),
        (f"bytes=10-{size + 500}", content[10:]),
        (f"bytes=-{size + 500}", content),
    ):
        part = client.get(address, headers={"Range": asked})
        assert (part.status_code, part.content) == (206, piece), asked
        start = content.index(piece) if len(piece) < size else 0
        assert part.headers["content-range"] == f"bytes {start}-{start + len(piece) - 1}/{size}"
    for wrong in ("bytes=5-2", f"bytes={size}-", "bytes=-0"):
        refused = client.get(address, headers={"Range": wrong})
        assert (refused.status_code, refused.headers["content-range"]) == (416, f"bytes */{size}")
    # Positions with thousands of digits are beyond the end of any file, unless the digits are zeros.
    many = "9" * 5000
    for beyond in (f"bytes={many}-", f"bytes={many}-{many}", f"bytes=5-{'0' * 5000}2"):
        refused = client.get(address, headers={"Range": beyond})
        assert (refused.status_code, refused.headers["content-range"]) == (416, f"bytes */{size}")
    for whole_file in (f"bytes=0-{many}", f"bytes=-{many}", f"bytes={'0' * 5000}-"):
        part = client.get(address, headers={"Range": whole_file})
        assert (part.status_code, part.content) == (206, content)
    # Requests for anything but a single range of bytes are answered with the whole file.
    for other in ("items=0-1", "bytes=0-1,5-6", "bytes=-", "bytes=a-b"):
        assert client.get(address, headers={"Range": other}).status_code == 200
    changed = client.get(address, headers={"Range": "bytes=0-9", "If-Range": '"other"'})
    assert (changed.status_code, changed.content) == (200, content)
    head = client.head(address)
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(size))


@pytest.mark.parametrize(
    "address",
    [
        "/videos/999999/file",
        "/videos/..%2f..%2fetc%2fpasswd/file",
        "/videos/%2e%2e/file",
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static//etc/passwd",
        "/../../etc/passwd",
        "/static/js/..%5c..%5capp.py",
    ],
)
def test_only_indexed_and_static_files_are_served(client: TestClient, address: str) -> None:
    answer = client.get(address)
    assert answer.status_code in (404, 422)
    assert "root:" not in answer.text
    assert "def create_app" not in answer.text


def test_link_that_replaced_a_file_is_refused(own_library: Library, tmp_path: Path, connect: Connect) -> None:
    library = own_library
    client = connect(library.index)
    number = number_of(client, "coffee.mp4")
    secret = tmp_path / "secret.mp4"
    encode(secret, pan("chelsea", 20))
    video = library.folder / "coffee.mp4"
    video.unlink()
    video.symlink_to(secret)
    for address in (f"/videos/{number}/file", f"/videos/{number}/thumbnail"):
        answer = client.get(address)
        assert answer.status_code == 422
        assert "symbolic link to a file other" in answer.json()["detail"]
    # Its properties are not read, either.
    other = number_of(client, "rocket & <b>.mp4")
    answer = client.post("/api/match", json={"video": other, "target": number})
    assert "symbolic link to a file other" in answer.json()["detail"]
    state = finish_job(client, client.post(f"/api/videos/{number}/shots").json())
    assert (state["state"], "symbolic link to a file other" in state["error"]) == ("failed", True)
    # The same goes if the folder is replaced with a symbolic link.
    moved = tmp_path / "moved"
    library.folder.rename(moved)
    (moved / "coffee.mp4").unlink()
    encode(moved / "coffee.mp4", pan("brick", 20))
    library.folder.symlink_to(moved)
    assert client.get(f"/videos/{number}/file").status_code == 422
    # A link to the very file that was indexed is as good as the file.
    copy = number_of(client, "copy.mp4")
    assert client.get(f"/videos/{copy}/file").content == (moved / "copy.mp4").read_bytes()


def test_deleted_file_or_pipe_is_refused_by_name(own_library: Library, connect: Connect) -> None:
    library = own_library
    client = connect(library.index)
    coffee, copy = number_of(client, "coffee.mp4"), number_of(client, "copy.mp4")
    (library.folder / "coffee.mp4").unlink()
    (library.folder / "copy.mp4").unlink()
    os.mkfifo(library.folder / "copy.mp4")
    assert "no such file" in client.get(f"/videos/{coffee}/file").json()["detail"]
    assert "not a regular file" in client.get(f"/videos/{copy}/file").json()["detail"]  # and does not block
    assert client.get(f"/videos/{copy}/thumbnail").status_code == 422
    assert client.get(f"/api/videos/{coffee}").json()["missing"]
    assert "file is gone" in client.get("/").text


def test_preview_is_a_piece_in_a_format_every_browser_plays(client: TestClient, tmp_path: Path) -> None:
    address = f"/videos/{number_of(client, 'coffee.mp4')}/preview"
    for piece, seconds in ((0, 10.0), (1, 2.0)):
        answer = client.get(address, params={"piece": piece})
        assert answer.headers["content-type"] == "video/mp4"
        (tmp_path / "piece.mp4").write_bytes(answer.content)
        info = probe(tmp_path / "piece.mp4")
        assert (info.codec, info.has_audio) == ("h264", False)
        assert info.duration == pytest.approx(seconds, abs=0.2)
    assert client.get(address, params={"piece": 0}, headers={"Range": "bytes=0-9"}).status_code == 206
    assert "beyond the end" in client.get(address, params={"piece": 2}).json()["detail"]
    assert client.get(address, params={"piece": 10**9}).status_code == 422
