"""The plugins in docs/examples work as installed packages through their entry points."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path

import numpy as np
import pytest

import vidkin
from tests.cli.conftest import run
from tests.support.videos import encode, pan
from vidkin.index import SerialExecutor
from vidkin.rendering import available_reports, inspect_machine, write_duplicate_report, write_recurring_report

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All examples as one package, with the entry points that each one lists for its ``pyproject.toml``."""
    lines = ""
    for file in EXAMPLES.glob("*.py"):
        shutil.copy(file, tmp_path)
        block = re.search(r"::\n\n((?:    .*\n)+)", file.read_text(encoding="utf-8"))
        assert block is not None, file
        lines += re.sub(r"(?m)^ {4}", "", block[1])
    groups = tomllib.loads(lines)["project"]["entry-points"]
    about = tmp_path / "examples-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: examples\nVersion: 1.0\n")
    entries = "".join(
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in names.items())
        for group, names in groups.items()
    )
    (about / "entry_points.txt").write_text(entries)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_there_is_one_example_of_each_kind() -> None:
    texts = [file.read_text(encoding="utf-8") for file in EXAMPLES.glob("*.py")]
    groups = {group for text in texts for group in re.findall(r'entry-points\."(vidkin\.\w+)"', text)}
    assert groups == {
        "vidkin.extractors",
        "vidkin.shot_detectors",
        "vidkin.shot_formats",
        "vidkin.duplicate_reports",
    }


def test_custom_extractor_finds_copies_and_appears_in_the_report(installed: Path) -> None:
    (installed / "videos").mkdir()
    for name, quality in (("coffee", "20"), ("rocket", "20"), ("low", "38")):
        frames = pan("coffee" if name == "low" else name, 60, width=96, height=64)
        encode(installed / "videos" / f"{name}.mp4", frames, options={"crf": quality})
    with vidkin.Index.open(installed / "i", extractor="gray-grid", create=True) as index:
        index.add(installed / "videos", executor=SerialExecutor(index.worker_spec))
        first = index.search(installed / "videos" / "low.mp4", own=False)[0]
        assert Path(first.path).name == "coffee.mp4"
        assert first.score > 0.7
        groups = index.duplicates()
    assert [len(group.members) for group in groups] == [2]
    write_duplicate_report(groups, installed / "copies.md")
    text = (installed / "copies.md").read_text(encoding="utf-8")
    assert text.startswith("## Group 1\n\n* **")
    assert "coffee.mp4" in text
    for ending in ("csv", "json", "html"):
        write_duplicate_report(groups, installed / f"copies.{ending}")
        write_recurring_report([], installed / f"recurring.{ending}")
        assert (installed / f"copies.{ending}").stat().st_size > 100
    with pytest.raises(vidkin.InvalidArgumentError, match=r"must be one of \.csv, \.html, \.json, \.md"):
        write_duplicate_report(groups, installed / "copies.doc")
    outputs = [word for name in ("c.md", "c.json") for word in ("-o", installed / name)]
    assert "c.md" in run("duplicates", "--index", installed / "i", *outputs).err
    assert (installed / "c.md").read_text(encoding="utf-8") == text
    assert len(json.loads((installed / "c.json").read_text())["groups"]) == 1


def test_custom_detector_and_format_are_listed_and_used(installed: Path) -> None:
    levels = [30] * 110 + [200] * 120
    frames = (np.full((32, 48, 3), level, np.uint8) for level in levels)
    film = encode(installed / "film.mp4", frames, rate=10)
    shots = vidkin.detect_shots(film, "flash", threshold=50)
    assert [shot.start_frame for shot in shots] == [0, 110]
    assert len(vidkin.detect_shots(film, "flash?threshold=250")) == 1
    shots.export(installed / "film.upload.txt")
    assert (installed / "film.upload.txt").read_text() == "0:00 Shot 1\n0:11 Shot 2\n"


def test_doctor_lists_plugins_with_their_package_and_those_that_fail_to_load(installed: Path) -> None:
    found = {one.name: one for one in inspect_machine() if one.name.startswith("registered ")}
    assert "gray-grid:<name> (examples 1.0)" in found["registered extractors"].detail
    assert "flash (examples 1.0)" in found["registered shot detectors"].detail
    assert "upload (examples 1.0)" in found["registered shot formats"].detail
    assert found["registered reports of duplicates"].detail == "csv, html, json, markdown (examples 1.0)"
    assert available_reports()[1] == ("csv", "html", "json")
    assert {one.state for one in found.values()} == {"ok"}
    entries = installed / "examples-1.0.dist-info" / "entry_points.txt"
    entries.write_text("[vidkin.shot_formats]\nbroken = nowhere:FORMAT\n")
    broken = {one.name: one for one in inspect_machine()}["registered shot formats"]
    assert (broken.state, broken.detail.partition(":")[0]) == ("broken", "broken from examples 1.0 cannot be loaded")
