"""System video players, replaced by scripts that record how they were called."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from vidkin.errors import InvalidArgumentError, MissingPartError
from vidkin.rendering.players import _INSTALLED, Player, find_player


def make_player(folder: Path, name: str, *, status: int = 0, stays: int = 0) -> Path:
    """A script that writes its arguments to ``NAME.txt`` next to it, one per line, and runs for some seconds."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    # A shell script, because a shebang line cannot name an interpreter whose path contains a space.
    path.write_text(
        '#!/bin/sh\nfirst=1\nfor word in "$@"; do\n'
        '  if [ $first = 1 ]; then first=0; printf %s "$word"; else printf "\\n%s" "$word"; fi\n'
        f'done > "$0.txt"\n/bin/sleep {stays}\nexit {status}\n'
    )
    path.chmod(0o755)
    return path


def test_best_installed_player_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingPartError, match="no video player was found; install mpv or vlc"):
        find_player()
    for name in ("xdg-open", "ffplay", "vlc", "mpv"):
        make_player(tmp_path, name)
        assert find_player().name == name
    assert find_player("vlc").program == str(tmp_path / "vlc")
    with pytest.raises(InvalidArgumentError, match="player must be an installed program, got 'nothing'"):
        find_player("nothing")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("mpv", ["--start=62.500"]),
        ("vlc", ["--start-time=62.500"]),
        ("ffplay", ["-ss", "62.500"]),
        ("xdg-open", []),
        ("own-player", []),
    ],
)
def test_players_start_at_the_requested_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, arguments: list[str]
) -> None:
    made = make_player(tmp_path / "bin", name)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.chdir(tmp_path)
    player = find_player(name)
    assert player.takes_time == bool(arguments)
    player.show("-rf é.mp4", 62.5)
    called = Path(f"{made}.txt").read_text().split("\n")
    assert called == [*arguments, os.path.join(tmp_path, "-rf é.mp4")]


def test_launchers_may_exit_at_once() -> None:
    assert [Player(name, "").hands_over for name in ("mpv", "vlc", "ffplay", "iina", "xdg-open", "own")] == [
        *(False, False, False, True, True, True),
    ]


def test_failing_player_raises_an_error(tmp_path: Path) -> None:
    player = find_player(str(make_player(tmp_path, "mpv", status=3)))
    with pytest.raises(MissingPartError, match="mpv exited with status 3; choose another player"):
        player.show("a.mp4", 0.0)


def test_windows_opens_the_file_without_a_known_player(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "startfile", opened.append, raising=False)
    player = find_player()
    assert (player.name, player.takes_time) == ("Windows", False)
    assert player.command(str(tmp_path / "a.mp4"), 5.0) == [str(tmp_path / "a.mp4")]
    player.show(str(tmp_path / "a.mp4"), 5.0)
    assert opened == [str(tmp_path / "a.mp4")]


def test_player_is_found_in_its_install_location(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_player(tmp_path / "apps", "VLC")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(_INSTALLED, sys.platform, {"vlc": str(tmp_path / "apps" / "VLC")})
    player = find_player()
    assert (player.name, player.program, player.takes_time) == ("vlc", str(tmp_path / "apps" / "VLC"), True)
