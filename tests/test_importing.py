"""Side effects of ``import vidkin``."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import vidkin

CODE = """
import contextlib, json, os, sys
before = dict(os.environ)
import vidkin, vidkin.errors
for name in vidkin.__all__:
    with contextlib.suppress(vidkin.errors.MissingPartError):  # names of training, where torch is not installed
        getattr(vidkin, name)
import vidkin.index, vidkin.shots, vidkin.media, vidkin.features, vidkin.rendering
for room in (vidkin.index, vidkin.shots, vidkin.media, vidkin.features):
    for name in room.__all__:
        with contextlib.suppress(vidkin.errors.MissingPartError):
            getattr(room, name)
print(json.dumps([name for name in {**os.environ, **before} if os.environ.get(name) != before.get(name)]))
"""


@pytest.mark.process
def test_importing_sets_no_environment_variables() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == []
    assert "stopping_when" in vidkin.__all__
