"""Files with bytes overwritten, removed or truncated: each has an outcome, and none reveals a bug in vidkin."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.index.helpers import PLAIN
from tests.support.videos import encode, pan
from vidkin.index import DiskStore, ProcessExecutor, open_place, scan
from vidkin.index.ingest.session import ingest

pytestmark = pytest.mark.kill

LAYOUTS = (
    ("mp4", "libx264"),
    ("mkv", "libx264"),
    ("ts", "libx264"),
    ("avi", "mpeg4"),
    ("webm", "libvpx"),
    ("mpg", "mpeg2video"),
)
MUTATIONS_A_FILE = 6


def mutate(content: bytes, seed: int) -> bytes:
    """Write noise or zeros, remove bytes, or truncate the file, at a position that depends on the seed."""
    generator = np.random.default_rng(seed)
    size = len(content)
    start = int(generator.integers(0, size))
    length = int(generator.integers(1, max(2, size // 8)))
    kind = seed % 4
    if kind == 0:
        filling = generator.bytes(length)
    elif kind == 1:
        filling = bytes(length)
    elif kind == 2:
        filling = b""
    else:
        return content[: max(start, size // 4)]
    return content[:start] + filling + content[start + length :]


@pytest.fixture(scope="module")
def mutated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, sources = tmp_path_factory.mktemp("mutated"), tmp_path_factory.mktemp("sources")
    for place, (ending, codec) in enumerate(LAYOUTS):
        options = {"g": "12"} | ({"deadline": "realtime", "cpu-used": "8"} if codec == "libvpx" else {})
        frames = pan("coffee", 150, width=96, height=64)
        source = encode(sources / f"a.{ending}", frames, rate=25, codec=codec, options=options)
        for number in range(MUTATIONS_A_FILE):
            content = mutate(source.read_bytes(), seed=number + MUTATIONS_A_FILE * place)
            (folder / f"{number}.{ending}").write_bytes(content)
    return folder


def test_every_damaged_file_has_an_outcome_and_none_is_a_bug(mutated: Path, tmp_path: Path) -> None:
    store = DiskStore(open_place(tmp_path / "store"))
    files = scan([mutated])
    report = ingest(store, files, ProcessExecutor(PLAIN, workers=1))
    assert report.total == len(files.files) == len(LAYOUTS) * MUTATIONS_A_FILE
    assert len(report.added) > len(files.files) / 2
    for outcome in report.broken:
        assert outcome.cause
        assert "internal error" not in outcome.cause
        assert "decoder process" not in outcome.cause
    # If the header states the duration, a video missing more than a second at the end is always reported.
    for record in store.videos():
        if record.status == "ok" and record.codec in ("mpeg4", "vp8") and record.duration < 4.8:
            assert record.damage, record.path
    # All outcomes are stored, so no file is read again.
    again = ingest(store, scan([mutated]), ProcessExecutor(PLAIN, workers=1))
    assert (len(again.unchanged), len(again.broken)) == (len(report.added), len(report.broken))
