"""Names of files that try to command the terminal, shown on a real one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.videos import encode, pan

pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")

NAMES = (
    b"title \x1b]0;owned\x07.mp4",
    b"ask \x1b[6n.mp4",
    b"clear \x1bc\x9b2J.mp4",
    b"two\nlines\r\tand a tab.mp4",
    "\u202egpm.4pm \u2066.mp4".encode(),
    "c1 \u0085\u009b31m.mp4".encode(),
    b"not unicode \xff\xfe.mp4",
)
# What the command line itself writes: colors, and moves within the line of progress.
OWN = re.compile(r"\x1b\[[0-9;]*[mKAG]|\x1b\[2K|\x1b\[\?25[lh]|\x1b\[1A|\r?\n|\r")
SCRIPT = """
import sys
from vidkin.cli.app import app
for words in [
    ["index", "videos", "--extractor", "classical", "--workers", "1", "--list-skipped"],
    ["info", "--videos"], ["info", "--videos", "--format", "plain"], ["info", "--videos", "--format", "tsv"],
    ["search", sys.argv[1]], ["search", sys.argv[1], "--format", "plain"], ["search", "gone \\x1b[6n.mp4"],
    ["match", sys.argv[1], sys.argv[2]],
    ["duplicates", "--plan", "plan.json"], ["duplicates", "--format", "tsv"], ["apply", "plan.json", "--dry-run"],
    ["shots", sys.argv[1]], ["remove", sys.argv[1]],
]:
    try:
        app(words)
    except SystemExit as end:
        print("status", words[0], end.code)
"""


@pytest.mark.process
def test_no_name_commands_the_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "videos"
    folder.mkdir()
    source = encode(tmp_path / "a.mp4", pan("coffee", 30, width=96, height=64)).read_bytes()
    for number, name in enumerate(NAMES):
        # Free boxes at the end: equal videos of different bytes.
        Path(os.fsdecode(os.path.join(os.fsencode(folder), name))).write_bytes(
            source + (8 + number).to_bytes(4, "big") + b"free" + bytes(number)
        )
    (folder / "broken \x1b[6n.mp4").write_text("text")
    (folder / "link \x1b[6n").symlink_to(tmp_path)
    first, second = (os.fsdecode(b"videos/" + name) for name in NAMES[:2])
    shown = on_terminal([sys.executable, "-c", SCRIPT, first, second], folder.parent, columns=80)
    assert [line for line in shown.split("\n") if line.startswith("status")] == [
        *("status index 1", "status info 0", "status info 0", "status info 0"),
        *("status search 0", "status search 0", "status search 3", "status match 0"),
        *(
            "status duplicates 0",
            "status duplicates 0",
            "status apply 0",
            "status shots 0",
            "status remove 0",
        ),
    ]
    rest = OWN.sub("", shown.replace("\t", ""))  # tabs are between the values of --format tsv
    assert re.findall(r".{0,30}[\x00-\x1f\x7f-\x9f].{0,30}", rest) == []
    assert re.findall(r".{0,30}[\u202a-\u202e\u2066-\u2069\udc80-\udcff].{0,30}", rest) == []
    assert "owned" in rest  # the names were shown, without what makes them commands
    assert "Traceback" not in rest


def on_terminal(command: list[str], folder: Path, columns: int) -> str:
    """What a terminal of this width gets from a program, newlines as \\n; bytes that are not UTF-8 as surrogates."""
    control, terminal = pty.openpty()
    environment = {
        **os.environ,
        "COLUMNS": str(columns),
        "LINES": "40",
        "TERM": "xterm-256color",
        "VIDKIN_CONFIG": os.devnull,
    }
    process = subprocess.Popen(command, cwd=folder, stdin=terminal, stdout=terminal, stderr=terminal, env=environment)
    os.close(terminal)
    parts = []
    while True:
        try:
            part = os.read(control, 65536)
        except OSError:  # Linux: the other side is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(control)
    assert process.wait(timeout=60) == 0
    return b"".join(parts).replace(b"\r\n", b"\n").decode("utf-8", "surrogateescape")
