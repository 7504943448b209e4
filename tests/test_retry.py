"""CI runs failed tests of lanes a second time, one at a time (.ci/retry.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

RETRY = Path(__file__).resolve().parents[1] / ".ci" / "retry.py"
FLAKY = """
from pathlib import Path

def test_of_chance():
    mark = Path(__file__).with_name("mark")
    if not mark.exists():
        mark.touch()
        raise AssertionError

def test_sound(): pass
"""
SKIPPED = FLAKY.replace("def test_sound(): pass", "import pytest\n\ndef test_sound(): pass").replace(
    "        raise AssertionError\n", "        raise AssertionError\n    pytest.skip('no part')\n"
)

pytestmark = pytest.mark.process


@pytest.mark.parametrize(
    ("code", "status", "line"),
    [
        (FLAKY, 0, "test_it.py::test_of_chance: failed, then passed alone"),
        ("def test_broken(): assert False", 1, "test_it.py::test_broken: failed, then failed again"),
        (SKIPPED, 1, "test_it.py::test_of_chance: failed, then did not fail again"),
        ("import pytest\n@pytest.mark.parametrize('n', range(11))\ndef test_many(n): assert False", 1, "at most 10"),
        ("import nothing_of_that_name\ndef test_sound(): pass", 2, "Interrupted: 1 error during collection"),
    ],
    ids=["flaky", "broken", "skipped", "many", "collection"],
)
def test_only_a_second_failure_fails(tmp_path: Path, code: str, status: int, line: str) -> None:
    (tmp_path / "test_it.py").write_text(code, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    command = [sys.executable, str(RETRY), "-q", "."]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, line in done.stdout) == (status, True), done.stdout
