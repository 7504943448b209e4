"""vidkin in a separate environment: `pip install ".[web]"` installs no training packages, and every command works."""

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
from tests.support.videos import encode, pan, photograph

ROOT = Path(__file__).resolve().parents[1]
# Packages that no command may need: those of the extras `train` and `plots`, and of the development extras.
LEARNING = (
    *("torch", "torchvision", "timm", "scipy", "sklearn", "skimage", "pywt", "onnx", "onnxscript"),
    *(
        "matplotlib",
        "pandas",
        "sympy",
        "numba",
        "cv2",
        "pytest",
        "hypothesis",
        "vidkin_research",
        "vidkin_scale",
        "ray",
    ),
)
_LISTING = """
import importlib.util, json, sys
print(json.dumps([name for name in sys.argv[1:] if importlib.util.find_spec(name) is not None]))
"""
_PYTHON = """
import json, sys
import vidkin
with vidkin.Index.open("library.vidkin", create=False, read_only=True) as index:
    best = index.search("clip.mp4", limit=1)[0]
comparison = vidkin.compare("videos/coffee.mp4", "videos/spare.mp4")
shots = vidkin.detect_shots("film.mp4")
try:
    vidkin.train
except vidkin.VidkinError as error:
    message = str(error)
print(json.dumps([best.path, comparison.score, [shot.start_frame for shot in shots], message]))
"""


@dataclass(frozen=True)
class Bare:
    """An environment with vidkin and the web app, and a folder with videos."""

    python: Path
    folder: Path

    def start(self, *words: str) -> list[str]:
        return [str(self.python), "-m", "vidkin", *words]

    def run(self, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a vidkin command in the folder."""
        done = subprocess.run(
            self.start(*words), cwd=self.folder, env=variables(), capture_output=True, text=True, timeout=120
        )
        assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def json(self, *words: str) -> Any:
        """Run a command with --format json and return its parsed output."""
        return json.loads(self.run(*words, "-f", "json").stdout)

    def ask(self, code: str, *words: str) -> Any:
        """Run a script and return its parsed JSON output."""
        command = [str(self.python), "-c", code, *words]
        done = subprocess.run(command, cwd=self.folder, env=variables(), capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def variables() -> dict[str, str]:
    """Environment variables without those that would affect the new environment."""
    dropped = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE", "VIDKIN_INDEX"}
    return {name: value for name, value in os.environ.items() if name not in dropped}


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Bare:
    folder = tmp_path_factory.mktemp("alone")
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    python = environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    pip = [
        str(python),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-compile",
        "--disable-pip-version-check",
        "--only-binary",
        ":all:",
    ]
    done = subprocess.run(
        [*pip, "--constraint", "constraints.txt", ".[web]"], cwd=ROOT, env=variables(), capture_output=True, text=True
    )
    if "No matching distribution found" in done.stderr:
        missing_part(f"this machine reaches no package index: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    home = folder / "home"
    make_videos(home)
    return Bare(python, home)


def make_videos(home: Path) -> None:
    """Write two videos, a smaller copy of one, a clip of it, a film of two shots, and images for whitening."""
    videos = home / "videos"
    videos.mkdir(parents=True)
    frames = list(pan("coffee", 80, width=256, height=192))
    encode(videos / "coffee.mp4", frames)
    encode(videos / "spare.mp4", (frame[::2, ::2] for frame in frames), options={"crf": "30"})
    encode(videos / "rocket.mp4", pan("rocket", 60, width=256, height=192))
    encode(home / "clip.mp4", frames[20:60], options={"crf": "30"})
    encode(home / "film.mp4", [*frames[:30], *pan("rocket", 30, width=256, height=192)])
    from PIL import Image

    (home / "pictures").mkdir()
    for name in ("astronaut", "chelsea", "brick"):
        Image.fromarray(photograph(name)).save(home / "pictures" / f"{name}.jpg")


@pytest.mark.timeout(900)
def test_no_training_packages_are_installed(bare: Bare) -> None:
    assert bare.ask(_LISTING, *LEARNING) == []


@pytest.mark.timeout(900)
def test_every_command_works(bare: Bare) -> None:
    """The commands run in the order of a typical session, each using the results of earlier ones."""
    report = bare.json("index", "videos", "--index", "library.vidkin")
    assert (report["added"], report["broken"]) == (3, [])
    assert bare.json("info", "--index", "library.vidkin")["videos"] == 3
    found = bare.json("search", "clip.mp4", "--index", "library.vidkin")["matches"]
    assert {Path(match["path"]).name for match in found[:2]} == {"coffee.mp4", "spare.mp4"}
    assert bare.json("match", "videos/coffee.mp4", "videos/spare.mp4")["score"] > 0.8
    film = bare.json("shots", "film.mp4")
    assert [shot["start_frame"] for shot in film["videos"][0]["shots"]] == [0, 30]
    player = bare.run("open", "clip.mp4", "--index", "library.vidkin", "--player", sys.executable, "--dry-run").stdout
    assert "coffee.mp4" in player or "spare.mp4" in player
    features = bare.folder / "features.safetensors"
    bare.run("embed", "clip.mp4", "-o", str(features))
    assert features.stat().st_size > 1000
    bare.run("whiten", "pictures", "videos", "-o", "whitening.safetensors", "--dimension", "16")
    assert (bare.folder / "whitening.safetensors").is_file()
    groups = bare.json("duplicates", "--index", "library.vidkin", "--plan", "plan.json")["groups"]
    assert [{Path(member["path"]).name for member in group["members"]} for group in groups] == [
        {"coffee.mp4", "spare.mp4"}
    ]
    spare = bare.folder / "videos" / "spare.mp4"
    bare.run("apply", "plan.json", "--move-to", "spares")
    assert not spare.exists()
    bare.run("apply", "plan.json", "--undo")
    assert spare.is_file()
    assert bare.ask(_PYTHON)[1] > 0.8
    bare.run("decisions", "--index", "library.vidkin")
    bare.run("remove", "videos/rocket.mp4", "--index", "library.vidkin")
    assert bare.json("info", "--index", "library.vidkin")["videos"] == 2


@pytest.mark.timeout(900)
def test_web_app_responds(bare: Bare) -> None:
    bare.run("index", "videos", "--index", "served.vidkin")
    command = bare.start("serve", "--index", "served.vidkin", "--port", "0")
    with subprocess.Popen(command, cwd=bare.folder, env=variables(), stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip().removeprefix("Open ")
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with browser.open(address, timeout=30) as answer:
            assert "coffee.mp4" in answer.read().decode()
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=30)


@pytest.mark.timeout(900)
def test_error_for_a_missing_part_is_one_sentence_with_the_install_command(bare: Bare) -> None:
    parts = {part["name"]: part for part in bare.json("doctor")["parts"]}
    assert parts["extra web"]["state"] == "ok"
    assert {part["state"] for part in parts.values()} == {"ok", "missing"}
    assert parts["extra train"]["detail"].endswith('pip install ".[train]" (in a clone of vidkin)')
    for words in (("train", "clips", "--data", "videos"), ("evaluate", "model")):
        told = bare.run(*words, status=3).stderr
        assert 'pip install ".[train]"' in told, told
        assert "Traceback" not in told
    for words in (("search", "clip.mp4", "--ray"), ("index", "videos", "--shards", "2"), ("info", "-i", "s3://a/b")):
        told = bare.run(*words, status=3).stderr
        assert "needs the package vidkin-scale, which is not installed" in told, told
        assert 'pip install "./scale" (in a clone of vidkin)' in told
        assert len(told.splitlines()) == 1
    for words in (("benchmark", "copies", "videos"), ("train-shots", "labels.json")):
        told = bare.run(*words, status=3).stderr
        assert f"vidkin {words[0]} needs the package vidkin-research, which is not installed" in told, told
        assert 'pip install "./research" (in a clone of vidkin)' in told
    told = bare.run("match", "clip.mp4", "videos/coffee.mp4", "-o", "map.svg", status=3).stderr
    assert 'pip install ".[plots]"' in told
    for command in ("train", "evaluate", "classify", "export", "import-model"):
        assert "Usage: " in bare.run(command, "--help").stdout
