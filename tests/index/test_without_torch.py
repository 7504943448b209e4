"""Everything except training works without the training packages, which nothing tries to import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.index.helpers import video

pytestmark = pytest.mark.process

LEARNING = ("torch", "torchvision", "timm", "sklearn", "scipy", "skimage", "pywt", "matplotlib", "pandas")

# Workers inherit the import path of the parent process, and with it a torch module that raises an error.
SCRIPT = """
import sys
sys.path.insert(0, sys.argv[4])
from vidkin.index.storage.opening import open_place
from vidkin import compare
from vidkin.index import Index, repair
folder, videos, extractor = sys.argv[1:4]
with Index.open(folder, extractor=extractor, create=True) as index:
    report = index.add(videos, workers=1)
    assert len(report.added) == 4 and not report.broken, report.broken
with Index.open(folder) as index:
    best = index.search(videos + "/0.mp4")
    assert best[0].score == 1.0 and best[0].path == videos + "/0.mp4"
    assert index.match(videos + "/0.mp4", videos + "/copy.mp4").segments
    (group,) = index.duplicates()
    assert {member.path for member in group.members} == {videos + "/0.mp4", videos + "/copy.mp4"}
    assert index.recall(queries=2).recall == 1.0
    index.remove(videos + "/2.mp4")
assert repair(open_place(folder)) == ()
assert compare(videos + "/0.mp4", videos + "/1.mp4").score < 0.5
print(*{name.partition(".")[0] for name in sys.modules} & set(sys.argv[5:]))
"""


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three videos, and a reencoded copy of one of them."""
    folder = tmp_path_factory.mktemp("videos")
    for seed in range(3):
        video(folder / f"{seed}.mp4", seed=seed, frames=30)
    copy = video(folder / "copy.mp4", seed=0, frames=30)
    copy.write_bytes(copy.read_bytes() + b"\0\0\0\x08free")
    return folder


@pytest.mark.parametrize("extractor", ["vidkin", "classical"])
def test_index_search_match_and_duplicates(extractor: str, videos: Path, tmp_path: Path) -> None:
    (tmp_path / "path").mkdir()
    for name in LEARNING:
        (tmp_path / "path" / f"{name}.py").write_text(f"raise ImportError('{name} is not installed')")
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "c.vidkin"), str(videos), extractor, str(tmp_path / "path")]
    done = subprocess.run([*command, *LEARNING], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""
