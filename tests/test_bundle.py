"""The bundle: an executable that indexes, searches, compares and serves on a machine without Python."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import missing_part
from tests.test_product_alone import make_videos

ROOT = Path(__file__).resolve().parents[1]

pytestmark = [
    pytest.mark.timeout(1800),
    pytest.mark.skipif(sys.platform == "win32", reason="the tests of the bundle end the server by a signal of POSIX"),
]


@dataclass(frozen=True)
class Bundle:
    """A bundle, and a folder with videos to use it on.

    Attributes:
        program: The executable.
        folder: Working folder and home folder of its commands.
    """

    program: Path
    folder: Path

    def environment(self) -> dict[str, str]:
        """Environment of a machine on which no other program can be found."""
        return {"HOME": str(self.folder), "PATH": str(self.folder / "nothing"), "LANG": "C.UTF-8"}

    def run(self, *words: str) -> str:
        """Run a command, assert that it succeeds, and return its standard output."""
        done = subprocess.run(
            [str(self.program), *words],
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def json(self, *words: str) -> Any:
        return json.loads(self.run(*words, "--format", "json"))


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """The bundle at VIDKIN_BUNDLE, or a newly built one, with an index of two copies and another video."""
    folder = tmp_path_factory.mktemp("bundle")
    built = os.environ.get("VIDKIN_BUNDLE")
    if built is None:
        command = [sys.executable, "release/bundle.py", "--output", str(folder / "dist")]
        done = subprocess.run(
            [*command, "--environment", str(folder / "environment")], cwd=ROOT, capture_output=True, text=True
        )
        if "No matching distribution found" in done.stderr:
            missing_part(f"this machine reaches no package index: {done.stderr.splitlines()[-1]}")
        assert done.returncode == 0, done.stderr
        (built,) = map(str, (folder / "dist").iterdir())
    made = Bundle(Path(built).absolute() / "vidkin", folder / "home")
    make_videos(made.folder)
    report = made.json("index", "videos", "--index", "library.vidkin", "--workers", "2")
    assert (report["added"], report["broken"]) == (3, [])
    return made


def test_clip_is_found_in_an_index_built_by_worker_processes(bundle: Bundle) -> None:
    matches = bundle.json("search", "clip.mp4", "--index", "library.vidkin")["matches"]
    assert {Path(match["path"]).name for match in matches[:2]} == {"coffee.mp4", "spare.mp4"}


def test_copies_are_grouped_moved_and_restored(bundle: Bundle) -> None:
    groups = bundle.json("duplicates", "--index", "library.vidkin", "--plan", "plan.json")["groups"]
    members = [{Path(member["path"]).name for member in group["members"]} for group in groups]
    assert members == [{"coffee.mp4", "spare.mp4"}]
    spare = bundle.folder / "videos" / "spare.mp4"
    bundle.run("apply", "plan.json", "--move-to", "spares")
    assert not spare.exists()
    bundle.run("apply", "plan.json", "--undo")
    assert spare.is_file()


def test_shots_of_several_videos_are_found_and_exported(bundle: Bundle) -> None:
    found = bundle.json("shots", "film.mp4", "videos/rocket.mp4")["videos"]
    assert [[shot["start_frame"] for shot in video["shots"]] for video in found] == [[0, 30], [0]]
    bundle.run("shots", "film.mp4", "-o", "film.edl", "-o", "film.otio")
    assert "film.mp4" in (bundle.folder / "film.edl").read_text(encoding="utf-8")
    assert json.loads((bundle.folder / "film.otio").read_text(encoding="utf-8"))["OTIO_SCHEMA"].startswith("Timeline")


def test_web_app_responds(bundle: Bundle) -> None:
    command = [str(bundle.program), "serve", "--index", "library.vidkin", "--port", "0"]
    with subprocess.Popen(
        command, cwd=bundle.folder, env=bundle.environment(), stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip().removeprefix("Open ")
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with browser.open(address, timeout=60) as answer:
            assert answer.status == 200
            assert "coffee.mp4" in answer.read().decode()
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=60)
    assert server.returncode == 0


def test_all_parts_work_and_missing_ones_are_not_offered_for_installation(bundle: Bundle) -> None:
    parts = {part["name"]: part for part in bundle.json("doctor")["parts"]}
    assert {name for name, part in parts.items() if part["state"] == "broken"} == set()
    assert {name for name in ("extra web", "extra otio") if parts[name]["state"] == "ok"} == {"extra web", "extra otio"}
    assert parts["extra train"]["detail"].endswith("this bundle cannot be extended)")


def test_no_telemetry_id_is_stored(bundle: Bundle) -> None:
    bundle.run("search", "clip.mp4", "--index", "library.vidkin")
    assert [path for path in bundle.folder.rglob("*") if path.name in ("Microsoft", "deviceid")] == []


def test_player_runs_with_the_system_libraries(bundle: Bundle) -> None:
    player = bundle.folder / "player.sh"
    player.write_text(f'#!/bin/sh\necho "${{LD_LIBRARY_PATH-none}}" > "{bundle.folder}/libraries.txt"\n')
    player.chmod(0o755)
    bundle.run("open", "clip.mp4", "--index", "library.vidkin", "--player", str(player))
    assert (bundle.folder / "libraries.txt").read_text(encoding="utf-8") == "none\n"


def test_bundle_contains_licenses_and_no_training_packages(bundle: Bundle) -> None:
    names = {path.relative_to(bundle.program.parent).as_posix() for path in bundle.program.parent.rglob("*")}
    packages = {name.removeprefix("_internal/").partition("/")[0].partition("-")[0].lower() for name in names}
    assert packages & {"torch", "scipy", "sklearn", "matplotlib", "pyinstaller", "pytest"} == set()
    assert {"LICENSE", "README.md", "_internal/vidkin/features/data/background/LICENSES.txt"} <= names
    licensed = {name.split("/")[1].partition("-")[0] for name in names if "/licen" in name.lower()}
    assert {"av", "faiss_cpu", "numpy", "onnxruntime", "pillow", "vidkin"} <= licensed
