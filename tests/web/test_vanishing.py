"""A server whose folders vanish or fill up says so with a status of its own, and heals by itself."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.web.conftest import Connect, Library, number_of
from vidkin._base.temporary import TemporaryFolder, remove_abandoned_folders


def test_removed_cache_is_recreated(own_library: Library, connect: Connect) -> None:
    client = connect(own_library.index)
    number = number_of(client, "coffee.mp4")
    assert client.get(f"/videos/{number}/thumbnail?time=1").status_code == 200
    shutil.rmtree(own_library.index / "web-cache")
    assert client.get(f"/videos/{number}/thumbnail?time=1").status_code == 200
    assert client.get(f"/videos/{number}/preview").status_code == 200


@pytest.mark.thorough
def test_moved_index_is_reported_and_found_again(own_library: Library, connect: Connect) -> None:
    client = connect(own_library.index)
    number = number_of(client, "coffee.mp4")
    elsewhere = own_library.index.with_name("elsewhere")
    own_library.index.rename(elsewhere)
    for method, address, content in (
        ("POST", "/api/search", {"video": number}),
        ("GET", "/api/videos", None),
        ("GET", "/api/lists", None),
        ("GET", f"/videos/{number}/thumbnail?time=2", None),
        ("POST", "/api/lists", {"name": "mine", "add": [number]}),
        ("GET", "/", None),
    ):
        answer = client.request(method, address, json=content, headers={"Accept": "application/json"})
        assert (address, answer.status_code) == (address, 410)
        assert "no longer exists; restore the index" in answer.json()["detail"]
    assert not own_library.index.exists()  # nothing of it was made anew
    elsewhere.rename(own_library.index)
    assert len(client.post("/api/search", json={"video": number}).json()["matches"]) >= 1
    assert client.get(f"/videos/{number}/thumbnail?time=2").status_code == 200


@pytest.mark.thorough
def test_full_disk_is_reported_and_leaves_no_partial_files(
    own_library: Library, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = connect(own_library.index)
    number = number_of(client, "coffee.mp4")

    def refuse(operation: str, path: str, target: str = "") -> None:
        if operation == "rename":  # after all was written
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path, None, target)

    with monkeypatch.context() as patched:
        patched.setattr("vidkin._base.disk.before", refuse)
        for address in (f"/videos/{number}/thumbnail?time=3", f"/videos/{number}/preview"):
            answer = client.get(address)
            assert (address, answer.status_code) == (address, 507)
            assert "no space is left on this disk; free some space, then try again" in answer.json()["detail"]
        job = client.post(f"/api/videos/{number}/shots", json={}).json()
        end = time.monotonic() + 20
        while (state := client.get(f"/api/jobs/{job['id']}").json())["state"] == "running" and time.monotonic() < end:
            time.sleep(0.1)
        assert (state["state"], "internal error" in state["error"]) == ("failed", False)
        assert "no space is left on this disk" in state["error"]
    assert client.get(f"/videos/{number}/thumbnail?time=3").status_code == 200
    assert not list((own_library.index / "web-cache").glob("*/.*"))


def test_upload_that_does_not_fit_is_not_kept(
    library: Library, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    import resource

    client = connect(library.index)
    least, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, most))
    try:
        answer = client.post("/api/uploads?name=a.mp4", content=library.clip.read_bytes())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (least, most))
    assert answer.status_code == 503
    assert "file too large" in answer.json()["detail"]
    assert client.post("/api/uploads?name=a.mp4", content=library.clip.read_bytes()).status_code == 201


def test_files_of_a_killed_process_are_cleaned_up_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = (
        "import time; from vidkin._base.temporary import TemporaryFolder; "
        "f = TemporaryFolder(); (f.path / 'dropped.mp4').write_bytes(b'x'); print(f.path, flush=True); time.sleep(60)"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        own = TemporaryFolder()
        (tmp_path / "vidkin-run-of-mine").mkdir()
        (tmp_path / "vidkin-run-of-mine" / "film.mp4").write_bytes(b"mine")
        (tmp_path / "vidkin-run-link").symlink_to(tmp_path / "vidkin-run-of-mine")
        remove_abandoned_folders()
        assert left.is_dir()  # its process lives
        process.kill()
        process.wait()
    remove_abandoned_folders()
    assert not left.parent.exists()
    assert own.path.is_dir()
    assert (tmp_path / "vidkin-run-of-mine" / "film.mp4").read_bytes() == b"mine"
    own.close()
    assert not own.path.exists()
