"""``vidkin doctor``."""

from __future__ import annotations

import importlib.metadata
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Library, run
from vidkin._base.install import install_command


def test_every_part_of_the_installation_is_checked(library: Library) -> None:
    found = run("doctor", "--index", library.index, "-f", "json").json
    states = {part["name"]: part["state"] for part in found["parts"]}
    for needed in ("vidkin", "packages", "onnxruntime", "video decoders", "video encoders", "classical extractor"):
        assert states[needed] == "ok"
    details = {part["name"]: part["detail"] for part in found["parts"]}
    assert "h264" in details["video decoders"]
    assert "fastapi" in details["extra web"]
    assert "10 regions" in details["classical extractor"]
    assert found["index"]["videos"] == 4
    assert found["recall"] is None


def test_recall_is_measured_on_the_index(library: Library) -> None:
    measured = run("doctor", "--index", library.index, "--recall", "-f", "json").json["recall"]
    # Four videos; coffee and its copy are relevant to each other, and the first stage sees all of so few.
    assert measured["queries"] == 4
    assert measured["relevant"] >= 2
    assert measured["recall"] == 1.0
    shown = run("doctor", "--index", library.index, "--recall").out
    assert "First-stage recall@100: 1.000" in shown


def test_without_an_index_the_machine_is_looked_at() -> None:
    outcome = run("doctor")
    assert "there is no index here" in outcome.out
    assert "there is no index at" in run("doctor", "--recall", status=3).err


def test_an_extra_that_is_missing_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: ["betamax-web>=1; extra == 'web'"])
    found = {part["name"]: part for part in run("doctor", "-f", "json").json["parts"]}["extra web"]
    assert found["state"] == "missing"
    assert found["detail"] == f"`vidkin serve`; not installed: betamax-web; install with: {install_command('web')}"


@pytest.mark.thorough
def test_missing_and_damaged_parts_of_an_index_are_listed_and_repaired(library: Library, tmp_path: Path) -> None:
    index = tmp_path / "my index"
    shutil.copytree(library.index, index)
    whole = {part["name"]: part for part in run("doctor", "--index", index, "-f", "json").json["parts"]}
    assert whole["files of the index"]["state"] == "ok"

    lost, damaged, *_ = sorted((index / "features").rglob("*.safetensors"))
    lost.unlink()
    damaged.write_bytes(damaged.read_bytes()[:-10])
    told = run("doctor", "--index", index, "-f", "json", status=1).json
    detail = next(part["detail"] for part in told["parts"] if part["name"] == "files of the index")
    assert "parts of 1 video are missing" in detail
    assert "its features are missing; run `vidkin index` with these videos to rebuild them" in detail

    repaired = run("doctor", "--index", index, "--repair", "-f", "json", status=1).json  # files are to be read
    assert [part["cause"].partition("safetensors")[2] for part in repaired["taken_out"]] == [
        " is missing or incomplete",
        " is damaged (the last 10 bytes are missing)",
    ]
    assert (repaired["index"]["videos"], repaired["index"]["broken"]) == (2, 2)
    # Until then whoever searches is told.
    assert "2 videos are left out until they are indexed again" in run("search", library.clip, "--index", index).err
    assert "parts of 2 videos are missing" in run("doctor", "--index", index, status=1).out
    assert run("index", library.folder, "--index", index, "--workers", "1", "-f", "json").json["added"] == 2
    assert "nothing is damaged" in run("doctor", "--index", index, "--repair").out


def test_an_index_that_cannot_be_opened_is_a_finding(library: Library, tmp_path: Path) -> None:
    index = tmp_path / "i"
    shutil.copytree(library.index, index)
    path = index / "videos.sqlite"
    content = path.read_bytes()
    path.write_bytes(content[:4096])
    outcome = run("doctor", "--index", index, "-f", "json", status=1).json
    assert outcome["index"] is None
    assert "videos.sqlite is damaged" in outcome["parts"][-1]["detail"]
    path.write_bytes(content)
    windows = index / "windows-1.vectors"
    windows.write_bytes(windows.read_bytes()[:-1])
    assert "parts of 1 video are missing" in run("doctor", "--index", index, status=1).out
    windows.write_bytes(bytes(windows.stat().st_size))
    assert "windows-1.vectors" in run("doctor", "--index", index, "--repair").out
    assert run("search", library.clip, "--index", index, "-f", "json").json["matches"][0]["score"] > 0.5


def test_decisions_that_cannot_be_read_are_a_finding(library: Library, tmp_path: Path) -> None:
    index = tmp_path / "i"
    shutil.copytree(library.index, index)
    (index / "decisions.json").write_text("{")
    assert "decisions.json is damaged" in run("doctor", "--index", index, status=1).out
    assert (
        "correct it, restore it from a backup or move it away"
        in run("doctor", "--index", index, "--repair", status=3).err
    )
    assert (index / "decisions.json").read_text() == "{"
