"""A disk that really is full: an index on a small file system."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.videos import encode

pytestmark = pytest.mark.kill

SIZE = "2m"
# As root, a mount namespace is enough; other users need a user namespace, which some systems forbid.
UNSHARE = ["unshare", "--mount"] if hasattr(os, "geteuid") and os.geteuid() == 0 else ["unshare", "-rm"]
SCRIPT = """
set -e
mount -t tmpfs -o size=$SIZE tmpfs "$DISK"
head -c 1920k /dev/zero > "$DISK/filler"
vidkin() { "$PYTHON" -c 'from vidkin.cli import main; main()' "$@"; }
set +e
vidkin index "$VIDEOS" --index "$DISK/c.vidkin" --extractor classical --workers 1 > "$OUT/first" 2> "$OUT/first.err"
echo $? > "$OUT/first.status"
rm "$DISK/filler"
vidkin index "$VIDEOS" --index "$DISK/c.vidkin" --workers 1 --format json > "$OUT/second" 2> "$OUT/second.err"
echo $? > "$OUT/second.status"
vidkin search "$VIDEOS/3.mp4" --index "$DISK/c.vidkin" -t 0 --format json > "$OUT/third" 2> "$OUT/third.err"
"""


def test_index_on_a_full_disk_reports_it_and_is_completed_when_there_is_space(tmp_path: Path) -> None:
    disk, videos, out = (tmp_path / name for name in ("disk", "videos", "out"))
    for folder in (disk, videos, out):
        folder.mkdir()
    if shutil.which("unshare") is None:
        pytest.skip("there is no `unshare` here")
    probe = subprocess.run(
        [*UNSHARE, "mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(disk)], capture_output=True
    )
    if probe.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {probe.stderr.decode(errors='replace').strip()}")
    generator = np.random.default_rng(0)
    for number in range(8):
        frames = generator.integers(0, 256, (20, 8, 12, 3), dtype=np.uint8).repeat(8, 1).repeat(8, 2)
        encode(videos / f"{number}.mp4", frames)
    environment = {
        **os.environ,
        "DISK": str(disk),
        "VIDEOS": str(videos),
        "OUT": str(out),
        "SIZE": SIZE,
        "PYTHON": sys.executable,
        "VIDKIN_CONFIG": os.devnull,
    }
    subprocess.run([*UNSHARE, "bash", "-c", SCRIPT], env=environment, check=True, timeout=250)
    said = (out / "first.err").read_text()
    assert (out / "first.status").read_text().strip() == "3", said
    assert "no space left on the disk" in said
    assert "Traceback" not in said
    assert (out / "second.status").read_text().strip() == "0", (out / "second.err").read_text()
    assert json.loads((out / "second").read_text())["videos"] == 8
    (best, *_) = json.loads((out / "third").read_text())["matches"]
    assert (Path(best["path"]).name, best["score"]) == ("3.mp4", 1.0)
