"""``vidkin embed``."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors import safe_open

from tests.cli.conftest import Library, run
from tests.support.folders import made_in
from vidkin.features import open_extractor
from vidkin.media import read_frames


def test_features_are_those_of_the_extractor(library: Library, tmp_path: Path) -> None:
    files = [library.folder / "rocket.mp4", library.clip]
    output = tmp_path / "features.safetensors"
    found = run("embed", *files, "-o", output, "--rate", "2", "-f", "json").json
    assert [item["frames"] for item in found["videos"]] == [16, 10]
    with safe_open(output, "numpy") as stored:
        tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 - no mapping
        metadata = stored.metadata()
    assert tensors["lengths"].tolist() == [16, 10]
    assert tensors["values"].shape[0] == tensors["timestamps"].shape[0] == tensors["information"].shape[0] == 26
    extractor = open_extractor()
    direct = extractor.extract(read_frames(files[1], rate=2, short_side=extractor.short_side))
    np.testing.assert_allclose(tensors["values"][16:], direct.whole, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(tensors["timestamps"][16:], direct.timestamps)
    assert [tensors[name].dtype for name in ("values", "timestamps", "information", "lengths")] == [
        np.float32,
        np.float64,
        np.float32,
        np.int64,
    ]
    assert metadata["fingerprint"] == extractor.fingerprint
    assert json.loads(metadata["paths"]) == [str(path) for path in files]
    assert list(tmp_path.glob("*.safetensors*")) == [output]


def test_npz_holds_the_same_without_pickles(library: Library, tmp_path: Path) -> None:
    words = ("embed", library.clip, library.folder / "rocket.mp4", "--rate", "1", "-o")
    run(*words, tmp_path / "f.npz")
    run(*words, tmp_path / "f.safetensors")
    with safe_open(tmp_path / "f.safetensors", "numpy") as stored:
        tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 - no mapping
        metadata = stored.metadata()
    with np.load(tmp_path / "f.npz", allow_pickle=False) as arrays:
        assert set(arrays.files) == set(tensors) | {"paths", "fingerprint", "extractor"}
        for name, values in tensors.items():
            np.testing.assert_array_equal(arrays[name], values)
        assert arrays["paths"].tolist() == json.loads(metadata["paths"])
        assert str(arrays["fingerprint"]) == metadata["fingerprint"]
    assert sorted(path.name for path in made_in(tmp_path)) == ["f.npz", "f.safetensors"]


def test_without_a_rate_short_videos_are_sampled_as_in_an_index(library: Library, tmp_path: Path) -> None:
    found = run("embed", library.clip, "-o", tmp_path / "f.safetensors", "-f", "json").json
    assert found["videos"][0]["frames"] == 10  # five seconds, twice a second


def test_broken_files_are_left_out(library: Library, tmp_path: Path) -> None:
    (tmp_path / "empty.mp4").write_bytes(b"")
    output = tmp_path / "f.safetensors"
    outcome = run("embed", tmp_path / "empty.mp4", library.clip, "-o", output, "-f", "json", status=1)
    assert [Path(item["path"]).name for item in outcome.json["broken"]] == ["empty.mp4"]
    assert "empty.mp4" in outcome.err
    assert output.is_file()
    nothing = run("embed", tmp_path / "empty.mp4", "-o", tmp_path / "g.safetensors", status=3)
    assert "empty.mp4" in nothing.err
    assert not (tmp_path / "g.safetensors").exists()


def test_the_folder_must_be_there(library: Library, tmp_path: Path) -> None:
    outcome = run("embed", library.clip, "-o", tmp_path / "no" / "f.safetensors", status=2)
    assert "there is no folder" in outcome.err


def test_what_is_read_is_never_written_over(library: Library, tmp_path: Path) -> None:
    clip, other = tmp_path / "clip.mp4", tmp_path / "other.mp4"
    shutil.copy(library.clip, clip)
    shutil.copy(library.clip, other)
    (tmp_path / "link.mp4").symlink_to(clip)
    before = clip.read_bytes()
    for words in (
        ("embed", other, clip, "-o", clip),
        ("embed", clip, "-o", tmp_path / "link.mp4"),
        ("whiten", other, clip, "-o", clip, "--dimension", "8"),
        ("whiten", tmp_path, "-o", clip, "--dimension", "8"),
    ):
        assert "is also an input; choose another output file" in run(*words, status=2).err
    picture = tmp_path / "still.png"
    Image.new("RGB", (64, 48), (200, 60, 20)).save(picture)
    shown = picture.read_bytes()
    for name in ("map", "frames"):
        told = run("match", picture, clip, "-o", f"{name}={picture}", "--index", library.index, status=2).err
        assert "is also an input" in told
    told = run("match", clip, other, "-o", f"map={tmp_path / 'm.png'}", "-o", tmp_path / "m.png", status=2)
    assert "--output map and --output frames name the same file" in told.err
    assert (clip.read_bytes(), picture.read_bytes()) == (before, shown)


def test_outputs_that_cannot_be_a_file_are_refused_before_any_work(library: Library, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for name in ("embed", "whiten"):
        told = run(name, library.clip, "-o", pipe, status=2).err
        assert "it is a device or a pipe, not a file" in told
        assert "there is no folder" in run(name, library.clip, "-o", tmp_path / "no" / "f", status=2).err
    assert pipe.is_fifo()
    output = tmp_path / "f.safetensors"
    run("embed", library.clip, "-o", output)
    plain = tmp_path / "plain"
    plain.touch()
    assert output.stat().st_mode == plain.stat().st_mode  # others may read it as they may any file


def test_a_full_disk_is_reported_and_the_old_output_is_kept(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("embed", library.clip, "-o", tmp_path / "f.safetensors")
    run(*words)
    before = (tmp_path / "f.safetensors").read_bytes()

    def full(path: Path, content: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    fitted = ("whiten", library.clip, "--dimension", "8", "--pictures", "8", "-o", tmp_path / "w.safetensors")
    for command in (words, fitted):
        assert "cannot be written: No space left on device" in run(*command, status=3).err
    assert (tmp_path / "f.safetensors").read_bytes() == before
    assert [path.name for path in made_in(tmp_path)] == ["f.safetensors"]
