"""A client generated from the API's description supports the tasks of a media server plugin."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.conftest import missing_part
from tests.support.seasons import write_season
from tests.support.videos import encode, pan
from tests.web.browser import served
from vidkin.index import Index

# Its own dependencies do not agree with those that this project is tested with: it has an environment of its own.
GENERATOR = "openapi-python-client==0.29.1"
# The generator knows JSON, text and bytes.
SETTINGS = """
package_name_override: vidkin_client
content_type_overrides:
  application/zip: application/octet-stream
  image/png: application/octet-stream
  image/webp: application/octet-stream
  video/mp4: application/octet-stream
"""


def make_client(folder: Path, address: str, token: str) -> Path:
    """A Python with the generator and the client."""
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    python = environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    pip = [str(python), "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, "--only-binary", ":all:", GENERATOR, "python-dateutil"], capture_output=True, text=True
    )
    if "No matching distribution found" in done.stderr:
        missing_part(f"this machine reaches no package index: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    request = urllib.request.Request(f"{address}/api/openapi.json", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        (folder / "openapi.json").write_bytes(answer.read())
    (folder / "settings.yaml").write_text(SETTINGS, encoding="utf-8")
    done = subprocess.run(
        [
            *(str(python), "-m", "openapi_python_client", "generate", "--meta", "none", "--fail-on-warning"),
            *("--path", "openapi.json", "--config", "settings.yaml", "--output-path", "vidkin_client"),
        ],
        cwd=folder,
        # The generator formats its output with a program of its environment, and only warns if there is none.
        env={**os.environ, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return python


@pytest.mark.install
@pytest.mark.timeout(600)
def test_generated_client_runs_the_tasks_of_a_media_server(tmp_path: Path) -> None:
    folder = tmp_path / "videos"
    write_season(folder)
    encode(folder / "coffee.mp4", [*pan("coffee", 60), *pan("rocket", 60)], options={"preset": "medium"})
    small = [*pan("coffee", 60, width=144, height=96), *pan("rocket", 60, width=144, height=96)]
    encode(folder / "copy.mp4", small, options={"crf": "32", "preset": "medium"})
    clip = encode(tmp_path / "clip.mp4", list(pan("coffee", 60))[20:50])
    Index.open(tmp_path / "i.vidkin", create=True).close()
    with served(tmp_path / "i.vidkin", token="") as opened:
        address, _, token = opened.partition("/?token=")
        python = make_client(tmp_path, address, token)
        script = Path(__file__).with_name("errands.py")
        done = subprocess.run(
            [str(python), str(script), address, token, str(folder), str(clip)],
            cwd=tmp_path,
            env={"PYTHONPATH": str(tmp_path), "PATH": ""},
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["index"] == ["index", 4, "coffee.mp4"]
    assert found["search"] == ["coffee.mp4", 2]
    assert ["coffee.mp4", "copy.mp4"] in found["duplicates"]
    groups, names = found["skip list"]
    assert groups >= 1
    assert any(name.endswith(".edl") for name in names)
    assert found["shots"] == 2
    assert found["thumbnail"] == "RIFF"
