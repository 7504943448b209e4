"""vidkin on a system that is not POSIX, and on a console without Unicode.

The other system is simulated in child processes by ``tests/support/other_system/sitecustomize.py``: vidkin's own
modules
see no POSIX-only names, and open files cannot be renamed, replaced or removed, as on Windows.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.videos import encode, pan

pytestmark = pytest.mark.process

_OTHER_SYSTEM = Path(__file__).parent / "support" / "other_system"
# Prevents Python from overriding the encoding with UTF-8.
_PLAIN_CONSOLE = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}


def _run(*words: object, status: int = 0, **environment: str) -> str:
    """Run a vidkin command in a new process and return its standard output."""
    done = subprocess.run(
        [sys.executable, "-m", "vidkin", *map(os.fspath, map(str, words))],
        capture_output=True,
        env={**os.environ, **environment},
        timeout=240,
    )
    error = done.stderr.decode("utf-8", "replace")
    assert done.returncode == status, error or done.stdout
    assert "Traceback" not in error, error
    return done.stdout.decode("utf-8", "replace")


def _other_system() -> dict[str, str]:
    paths = [str(_OTHER_SYSTEM), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(paths)}


def _python(code: str) -> subprocess.CompletedProcess[str]:
    """Run code on the simulated system."""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **_other_system()}, timeout=120
    )


@pytest.fixture
def films(tmp_path: Path) -> Path:
    """A folder with a video, a more compressed copy of it, and another video."""
    folder = tmp_path / "films"
    folder.mkdir()
    encode(folder / "coffee.mp4", pan("coffee", 60), rate=10)
    encode(folder / "copy of coffee.mp4", pan("coffee", 60), rate=10, options={"crf": "32"})
    encode(folder / "rocket.mp4", pan("rocket", 60), rate=10)
    return folder


def test_simulated_system_lacks_what_windows_lacks(tmp_path: Path) -> None:
    code = f"""
import os
space = {{"__name__": "vidkin.test"}}
exec("import os, signal, socket, sys", space)
for module, name in [("os", "fork"), ("os", "getuid"), ("os", "pread"), ("signal", "SIGKILL"), ("socket", "AF_UNIX")]:
    assert hasattr(__import__(module), name) and not hasattr(space[module], name), (module, name)
assert space["sys"].platform == "win32" and space["os"].getpid() == os.getpid()
try:
    exec("import fcntl", space)
except ModuleNotFoundError:
    import fcntl
else:
    raise AssertionError("fcntl")
path, other = {str(tmp_path / "a")!r}, {str(tmp_path / "b")!r}
with open(path, "w"), open(other, "w"):
    pass
for operation in (lambda: os.replace(path, other), lambda: os.replace(other, path), lambda: os.unlink(path)):
    with open(path):
        try:
            operation()
        except PermissionError:
            continue
    raise AssertionError("an open file was changed")
os.replace(path, other)
"""
    done = _python(code)
    assert done.returncode == 0, done.stderr


def test_every_module_can_be_imported_without_posix() -> None:
    code = """
import importlib, pkgutil, vidkin
for module in pkgutil.walk_packages(vidkin.__path__, "vidkin."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(len([name for name in __import__("sys").modules if name.startswith("vidkin")]))
"""
    done = _python(code)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 200


def test_index_search_and_shots_run_without_posix(films: Path, tmp_path: Path) -> None:
    other, index = _other_system(), tmp_path / "i.vidkin"
    report = json.loads(_run("index", films, "-i", index, "--workers", 2, "-f", "json", **other))
    assert report["added"] == 3
    # Index the files again.
    encode(films / "later.mp4", pan("chelsea", 40), rate=10)
    report = json.loads(_run("index", films, "-i", index, "--workers", 2, "-f", "json", **other))
    assert report["added"] == 1
    (films / "later.mp4").unlink()
    _run("index", films, "-i", index, "--prune", **other)
    found: Any = json.loads(_run("search", films / "coffee.mp4", "-i", index, "-f", "json", **other))
    assert "copy of coffee.mp4" in json.dumps(found)
    assert "coffee.mp4" in _run("info", "--videos", "-i", index, **other)
    _run("shots", films / "coffee.mp4", "-o", f"split={tmp_path / 'pieces'}", "-o", tmp_path / "shots.csv", **other)
    assert list((tmp_path / "pieces").glob("coffee-*.mp4"))


@pytest.mark.parametrize(
    "link",
    [
        (),
        (
            "--link",
            "hard",
        ),
        (
            "--link",
            "symbolic",
        ),
    ],
)
def test_duplicates_are_planned_moved_and_restored_without_posix(
    films: Path, tmp_path: Path, link: tuple[str, ...]
) -> None:
    other, index, plan = _other_system(), tmp_path / "i.vidkin", tmp_path / "plan.json"
    spare = films / "copy of coffee.mp4"
    before = {path.name: path.read_bytes() for path in films.iterdir()}
    _run("index", films, "-i", index, **other)
    _run("duplicates", "-i", index, "--plan", plan, "-o", tmp_path / "page.html", **other)
    moved = json.loads(_run("apply", plan, "--move-to", tmp_path / "spare", *link, "-f", "json", **other))
    assert [(Path(file["path"]), file["outcome"]) for file in moved["files"]] == [(spare, "removed")]
    assert spare.exists() is bool(link)
    assert [path.name for path in (tmp_path / "spare").rglob("*.mp4")] == [spare.name]
    _run("apply", plan, "--undo", **other)
    assert {path.name: path.read_bytes() for path in films.iterdir()} == before


def test_console_without_unicode_shows_every_name(films: Path, tmp_path: Path) -> None:
    index, odd = tmp_path / "i.vidkin", tmp_path / "videos"
    odd.mkdir()
    for name in ("café – 日本.mp4", "copy 🎬.mp4"):
        (odd / name).write_bytes((films / "coffee.mp4").read_bytes())
    _run("index", odd, "-i", index)
    for words in (
        ("info", "--videos", "-i", index),
        ("search", films / "coffee.mp4", "-i", index),
        ("search", odd / "café – 日本.mp4", "-i", index),
        ("duplicates", "-i", index, "-o", tmp_path / "é.html", "-o", tmp_path / "groups.csv"),
        ("duplicates", "-i", index, "--plan", tmp_path / "plan.json"),
        ("match", odd / "café – 日本.mp4", odd / "copy 🎬.mp4"),
        ("shots", odd / "café – 日本.mp4"),
        ("index", odd, "-i", index),
        ("--help",),
        ("search", "--help"),
        ("doctor",),
    ):
        shown = _run(*words, **_PLAIN_CONSOLE)
        assert shown.isascii(), words
    assert "copy" in _run("info", "--videos", "-i", index, **_PLAIN_CONSOLE)
    assert "日本" in (tmp_path / "groups.csv").read_text(encoding="utf-8")
