"""``vidkin embed``."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors import safe_open

from tests.cli.conftest import Library, run
from vidkin.features import open_extractor
from vidkin.media import read_frames


def test_features_are_those_of_the_extractor(library: Library, tmp_path: Path) -> None:
    files = [library.folder / "rocket.mp4", library.clip]
    output = tmp_path / "features.safetensors"
    found = run("embed", *files, "-o", output, "--rate", "2", "--json").json
    assert [item["frames"] for item in found["videos"]] == [16, 10]
    with safe_open(output, "pt") as stored:
        tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 - no mapping
        metadata = stored.metadata()
    assert tensors["lengths"].tolist() == [16, 10]
    assert (
        tensors["values"].shape[0] == tensors["timestamps"].shape[0] == tensors["information"].shape[0] == 26
    )
    extractor = open_extractor("classical")
    direct = extractor.extract(read_frames(files[1], rate=2, short_side=extractor.short_side))
    torch.testing.assert_close(tensors["values"][16:], direct.values.float())
    assert torch.equal(tensors["timestamps"][16:], direct.timestamps)
    assert metadata["fingerprint"] == extractor.fingerprint
    assert json.loads(metadata["paths"]) == [str(path) for path in files]
    assert list(tmp_path.glob("*.safetensors*")) == [output]


def test_without_a_rate_short_videos_are_sampled_as_in_an_index(library: Library, tmp_path: Path) -> None:
    found = run("embed", library.clip, "-o", tmp_path / "f.safetensors", "--json").json
    assert found["videos"][0]["frames"] == 8  # five seconds


def test_broken_files_are_left_out(library: Library, tmp_path: Path) -> None:
    (tmp_path / "empty.mp4").write_bytes(b"")
    output = tmp_path / "f.safetensors"
    outcome = run("embed", tmp_path / "empty.mp4", library.clip, "-o", output, "--json", status=1)
    assert [Path(item["path"]).name for item in outcome.json["broken"]] == ["empty.mp4"]
    assert "empty.mp4" in outcome.err
    assert output.is_file()
    nothing = run("embed", tmp_path / "empty.mp4", "-o", tmp_path / "g.safetensors", status=3)
    assert "empty.mp4" in nothing.err
    assert not (tmp_path / "g.safetensors").exists()


def test_the_folder_must_be_there(library: Library, tmp_path: Path) -> None:
    outcome = run("embed", library.clip, "-o", tmp_path / "no" / "f.safetensors", status=2)
    assert "there is no folder" in outcome.err
