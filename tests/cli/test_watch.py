"""``vidkin index --watch``: a program that runs until Ctrl-C."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Library, run

pytestmark = [pytest.mark.kill, pytest.mark.usefixtures("library")]


@pytest.mark.skipif(sys.platform == "win32", reason="another signal ends programs there")
def test_it_adds_what_appears_until_ctrl_c(library: Library, tmp_path: Path) -> None:
    folder, index = tmp_path / "videos", tmp_path / "index.vidkin"
    folder.mkdir()
    shutil.copy(library.folder / "rocket.mp4", folder / "one.mp4")
    (folder / "empty.mp4").touch()
    command = [sys.executable, "-m", "vidkin", "index", folder, "--index", index, "--watch", "-f", "json", "-w", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        first = json.loads(program.stdout.readline())
        assert [(item["kind"], Path(item["path"]).name) for item in first["changes"]] == [
            ("added", "one.mp4"),
            ("broken", "empty.mp4"),
        ]
        shutil.copy(library.folder / "coffee.mp4", folder / "two\nlines.mp4")
        second = json.loads(program.stdout.readline())
        assert [(item["kind"], Path(item["path"]).name) for item in second["changes"]] == [("added", "two\nlines.mp4")]
        assert (first["videos"], second["videos"]) == (1, 2)
        program.send_signal(signal.SIGINT)
        out, err = program.communicate(timeout=30)
    assert (program.returncode, out) == (0, "")
    assert "Watching 1 path; Ctrl-C ends it." in err
    assert "Stopped watching." in err
    # What was found is told again in the same numbers, by everything that counts.
    info = run("info", "--index", index, "-f", "json").json
    assert (info["videos"], info["broken"]) == (2, 1)


def test_photographs_that_were_left_out_are_counted(library: Library, tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    shutil.copy(library.folder / "rocket.mp4", folder)
    for name in ("a.jpg", "b.PNG"):
        (folder / name).touch()
    shown = run("index", folder, "--index", tmp_path / "index", "-w", "1")
    assert "2 photographs were skipped; use --images to add them." in shown.err
    listed = run("index", folder, "--index", tmp_path / "index", "--list-skipped").out
    assert listed.count("a photograph (--images)") == 2
