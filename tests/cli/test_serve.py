"""``vidkin serve``."""

from __future__ import annotations

import builtins
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Library, run


@pytest.mark.process
def test_it_serves_until_ctrl_c(library: Library) -> None:
    command = [sys.executable, "-m", "vidkin", "serve", str(library.index), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip().removeprefix("Open ")
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address, timeout=30) as answer:
            assert "coffee.mp4" in answer.read().decode()
        server.send_signal(signal.SIGINT)
        _, err = server.communicate(timeout=30)
        assert server.returncode == 0
        assert "Traceback" not in err
        assert "Interrupted" not in err


def test_other_computers_need_a_token(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    import vidkin.web.server as server

    monkeypatch.setattr(server.uvicorn.Server, "run", lambda self, sockets: self._on_ready())
    out = run("serve", library.index, "--host", "0.0.0.0", "--port", "0").out
    assert "?token=" in out
    assert len(out.partition("?token=")[2].strip()) >= 32
    chosen = run("serve", library.index, "--port", "0", "--token", "swordfish").out
    assert chosen.strip().endswith("?token=swordfish")
    assert "token" not in run("serve", library.index, "--port", "0", "--host", "localhost").out


def test_the_browser_is_opened_on_request(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    import vidkin.web.server as server

    opened: list[str] = []
    monkeypatch.setattr(server.uvicorn.Server, "run", lambda self, sockets: self._on_ready())
    monkeypatch.setattr("webbrowser.open", opened.append)
    run("serve", library.index, "--port", "0")
    assert opened == []
    out = run("serve", library.index, "--port", "0", "--open").out
    assert opened == [out.strip().removeprefix("Open ")]


def test_without_an_index_it_says_how_to_make_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import vidkin.web.server as server

    assert "make one with `vidkin index" in run("serve", tmp_path / "c.vidkin", status=3).err
    monkeypatch.setattr(server.uvicorn.Server, "run", lambda self, sockets: self._on_ready())
    assert "Open http" in run("serve", tmp_path / "c.vidkin", "--create", "--port", "0").out
    assert (tmp_path / "c.vidkin").is_dir()


def test_an_address_that_cannot_be_used_ends_the_command_with_advice(library: Library) -> None:
    err = run("serve", library.index, "--host", "192.0.2.1", status=2).err
    assert "cannot listen at 192.0.2.1:8800" in err
    assert "choose another --port" in err


def test_a_missing_extra_is_named(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "vidkin" and rest[2] == ("web",):
            raise ModuleNotFoundError("No module named 'fastapi'", name="fastapi")
        return whole(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    err = run("serve", library.index, status=3).err
    assert 'needs fastapi, which is not installed; run pip install "vidkin[web]"' in err
