"""``vidkin open``, with a player of one's own on the search path."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from PIL import Image

from tests.cli.conftest import Library, run
from tests.rendering.test_players import make_player

# A player goes on when the command has ended.
pytestmark = pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")


@pytest.fixture
def mpv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a player writes its arguments."""
    made = make_player(tmp_path / "bin", "mpv", stays=3)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("DISPLAY", ":0")
    return Path(f"{made}.txt")


@pytest.mark.thorough
def test_a_match_is_opened_at_its_time(library: Library, mpv: Path) -> None:
    best = run("search", library.clip, "--index", library.index, "-f", "json").json["matches"][0]
    outcome = run("open", library.clip, "--index", library.index)
    start, path = mpv.read_text().split("\n")
    assert path == best["path"]
    assert float(start.removeprefix("--start=")) == pytest.approx(best["segments"][0]["target_start"], abs=1e-3)
    assert float(start.removeprefix("--start=")) == pytest.approx(4.0, abs=0.6)
    assert "opened at 0:0" in outcome.out
    assert run("open", library.clip, "--at", "1", "-f", "json").json["shown"] is True


@pytest.mark.thorough
def test_other_matches_and_files(library: Library, mpv: Path) -> None:
    found = run("open", library.clip, "--rank", "2", "--index", library.index, "--dry-run", "-f", "json").json
    assert Path(found["path"]).stem.endswith("coffee")
    assert not mpv.exists()
    run("open", library.folder / "rocket.mp4", "--at", "0:02.5")
    assert mpv.read_text() == f"--start=2.500\n{library.folder / 'rocket.mp4'}"
    # A query in the index does not match itself.
    itself = ["open", found["path"], "--index", library.index, "--dry-run", "-f", "json"]
    assert run(*itself).json["path"] not in ("", found["path"])
    assert run(*itself, "--rank", "1").json["path"] == run(*itself).json["path"]
    outcome = run("open", library.clip, "--rank", "200", "--index", library.index, status=3)
    assert "no match 200, only" in outcome.err


def test_nothing_to_open(library: Library, tmp_path: Path, mpv: Path) -> None:
    plain = tmp_path / "plain.png"
    Image.new("RGB", (96, 64), (120, 120, 120)).save(plain)
    outcome = run("open", plain, "--index", library.index, status=3)
    assert "plain.png: nothing similar found; add videos with `vidkin index PATH`" in outcome.err
    assert not mpv.exists()


def test_open_prints_the_time_for_players_that_cannot_seek(library: Library, tmp_path: Path, mpv: Path) -> None:
    make_player(tmp_path / "bin", "own")
    outcome = run("open", library.folder / "rocket.mp4", "--at", "5", "--player", "own")
    assert "own cannot start at a time; go to 0:05.0 in the video" in outcome.err


@pytest.mark.thorough
def test_a_file_that_is_gone_is_not_opened(library: Library, tmp_path: Path, mpv: Path) -> None:
    (tmp_path / "one").mkdir()
    video = Path(shutil.copy(library.folder / "rocket.mp4", tmp_path / "one"))
    run("index", video, "--index", tmp_path / "i", "--workers", "1")
    video.unlink()
    outcome = run("open", library.folder / "rocket.mp4", "--index", tmp_path / "i", status=3)
    assert "rocket.mp4: the file is gone" in outcome.err
    assert not mpv.exists()


def test_a_player_that_ends_at_once_has_opened_nothing(library: Library, tmp_path: Path, mpv: Path) -> None:
    """As one without a screen does."""
    make_player(tmp_path / "bin", "mpv")
    words = ("open", library.clip, "--at", "1", "--index", library.index)
    outcome = run(*words, status=3)
    assert outcome.out == ""
    assert f"{library.clip}: mpv ended at once; run it with the file to see why" in " ".join(outcome.err.split())
    assert run(*words, "-f", "json", status=3).json["shown"] is False
    assert run(*words, "--dry-run", "-f", "json").json["shown"] is False
    # The program of the desktop only starts a player.
    make_player(tmp_path / "bin", "xdg-open")
    assert run(*words, "--player", "xdg-open", "-f", "json").json["shown"] is True


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="another system says otherwise where its screen is")
def test_without_a_screen_no_player_is_started(library: Library, mpv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    words = ("open", library.clip, "--at", "1")
    assert "mpv cannot show a video here, there is no screen" in " ".join(run(*words, status=3).err.split())
    assert not mpv.exists()
    run(*words, "--player", "mpv")  # whoever names one knows what it can do


def test_a_time_beyond_the_end_is_refused(library: Library, mpv: Path) -> None:
    outcome = run("open", library.folder / "rocket.mp4", "--at", "0:08", status=2)
    assert "--at must be before the end of" in " ".join(outcome.err.split())
    assert "rocket.mp4, 0:08.0, got 0:08.0" in " ".join(outcome.err.split())
    assert not mpv.exists()
