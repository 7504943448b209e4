"""ONNX Runtime is loaded with telemetry disabled."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import vidkin

_RUN = """
import numpy as np, os, vidkin, vidkin.features as features
from vidkin.media import Frames
before = dict(os.environ)
features.open_extractor("vidkin").extract(Frames(np.zeros((1, 64, 64, 3), np.uint8), np.zeros(1)))
print(sorted(set(os.environ.items()) - set(before.items())))
"""


def describe_frame(home: Path, **environment: str) -> str:
    """Describe a frame in a new process with this home folder; return the environment variables it sets."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "ORT_"))}
    done = subprocess.run(
        [sys.executable, "-c", _RUN],
        env={**variables, "HOME": str(home), **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.process
def test_describing_a_frame_sends_no_telemetry(tmp_path: Path) -> None:
    assert describe_frame(tmp_path) == "[('ORT_DISABLE_TELEMETRY', '1')]"
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.process
def test_telemetry_setting_in_the_environment_is_respected(tmp_path: Path) -> None:
    assert describe_frame(tmp_path, ORT_DISABLE_TELEMETRY="yes") == "[]"


def test_no_module_imports_onnxruntime_directly() -> None:
    modules = Path(vidkin.__file__).parent.rglob("*.py")
    assert [path for path in modules if re.search(r"(?m)^\s*import onnxruntime\b", path.read_text("utf-8"))] == []
