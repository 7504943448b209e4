"""``vidkin serve``."""

from __future__ import annotations

import builtins
import html
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from tests.cli.conftest import Library, run
from vidkin._base.install import install_command


@pytest.mark.process
def test_it_serves_until_ctrl_c(library: Library) -> None:
    command = [sys.executable, "-m", "vidkin", "serve", "--index", str(library.index), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip().removeprefix("Open ")
        assert address.startswith("http://127.0.0.1:")
        # Another account of this computer finds the port, and not the token.
        bare, _, token = address.partition("?token=")
        assert len(token) >= 32
        for path in ("", "api/videos", "videos/1/file"):
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(bare + path, timeout=30)
        # A browser keeps the cookie, a script sends the token.
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with browser.open(address, timeout=30) as answer:
            assert "coffee.mp4" in answer.read().decode()
        script = urllib.request.Request(f"{bare}api/videos", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(script, timeout=30) as answer:
            assert "coffee.mp4" in answer.read().decode()
        server.send_signal(signal.SIGINT)
        _, err = server.communicate(timeout=30)
        assert server.returncode == 0
        assert "Traceback" not in err
        assert "Interrupted" not in err


def test_other_computers_need_a_token(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: self._on_ready())
    out = run("serve", "--index", library.index, "--host", "0.0.0.0", "--port", "0").out
    assert "?token=" in out
    assert len(out.partition("?token=")[2].strip()) >= 32
    chosen = run("serve", "--index", library.index, "--port", "0", "--token", "swordfish").out
    assert chosen.strip().endswith("?token=swordfish")
    assert "?token=" in run("serve", "--index", library.index, "--port", "0", "--host", "localhost").out
    without = run("serve", "--index", library.index, "--port", "0", "--no-token")
    assert "token" not in without.out
    assert "Without a token every account of this computer can see and change what is here." in without.err
    refused = run("serve", "--index", library.index, "--host", "0.0.0.0", "--port", "0", "--no-token", status=2).err
    assert "a server without a token must listen on 127.0.0.1, got 0.0.0.0" in refused
    err = run("serve", "--index", library.index, "--no-token", "--token", "swordfish", status=2).err
    assert "--no-token and --token (or VIDKIN_TOKEN) contradict each other" in " ".join(err.split())


def test_the_browser_is_opened_on_request(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    pages: list[tuple[str, int]] = []

    def show(address: str) -> None:
        opened.append(address)
        if address.startswith("file:"):
            page = Path(urllib.request.url2pathname(address.removeprefix("file://")))
            pages.append((html.unescape(page.read_text()), page.stat().st_mode & 0o077))

    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: self._on_ready())
    monkeypatch.setattr("webbrowser.open", show)
    run("serve", "--index", library.index, "--port", "0")
    assert opened == []
    out = run("serve", "--index", library.index, "--port", "0", "--open").out
    # What a browser was started with is shown to every account: the token is in a file of ours.
    (address,) = opened
    assert "token" not in address
    assert out.strip().removeprefix("Open ") in pages[0][0]
    assert pages[0][1] == 0
    out = run("serve", "--index", library.index, "--port", "0", "--open", "--no-token").out
    assert opened[1:] == [out.strip().removeprefix("Open ")]


def test_without_an_index_it_says_how_to_make_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    err = " ".join(run("serve", status=3).err.split())
    assert "there is no index at collection.vidkin; make one with `vidkin index FOLDER`" in err
    assert "or run `vidkin serve --create` and add folders in the browser" in err
    err = " ".join(run("serve", "--index", "c.vidkin", status=3).err.split())
    assert "`vidkin index FOLDER --index c.vidkin`" in err
    assert "`vidkin serve --index c.vidkin --create`" in err
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: self._on_ready())
    assert "Open http" in run("serve", "--index", tmp_path / "c.vidkin", "--create", "--port", "0").out
    assert (tmp_path / "c.vidkin").is_dir()


def test_a_folder_of_videos_is_not_taken_for_an_index_and_the_next_command_is_named(library: Library) -> None:
    err = " ".join(run("serve", library.folder, status=3).err.split())
    assert f"{library.folder} is a folder without an index; run `vidkin index {library.folder}`" in err


def test_an_address_that_cannot_be_used_ends_the_command_with_advice(library: Library) -> None:
    err = run("serve", "--index", library.index, "--host", "192.0.2.1", status=2).err
    assert "cannot listen on 192.0.2.1:8800" in err
    assert "choose another --port" in err


def test_a_missing_extra_is_named(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "vidkin" and rest[2] == ("web",):
            raise ModuleNotFoundError("No module named 'fastapi'", name="fastapi")
        return whole(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    err = run("serve", "--index", library.index, status=3).err
    assert f"needs fastapi, which is not installed; run {install_command('web')}" in err
