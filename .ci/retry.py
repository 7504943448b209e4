"""Run pytest and rerun failed tests once, alone; only a second failure counts.

    python .ci/retry.py [arguments of pytest]

Tests of browsers, servers and killed processes can fail because of races with other processes. More than ten failures
are not a coincidence and are not rerun. Neither are other problems: files that cannot be collected, a crash of pytest,
an interruption. The exit status is that of pytest.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path

MOST = 10
# Exit status of pytest when tests ran and some of them failed.
TESTS_FAILED = 1


def main(arguments: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache"  # a new cache, without earlier failures
        command = [sys.executable, "-m", "pytest", *arguments, "-o", f"cache_dir={cache}"]
        status = subprocess.run(command).returncode
        failed = read_failed(cache)
        if status != TESTS_FAILED or not failed:
            return status
        if broken := [name for name in failed if "::" not in name]:
            print(f"Not rerun: {', '.join(broken)} could not be collected.")
            return status
        if len(failed) > MOST:
            print(f"Not rerun: {len(failed)} tests failed, but at most {MOST} are rerun.")
            return status
        print(f"{len(failed)} failed; rerunning each of them alone.", flush=True)
        report = Path(folder) / "second.xml"
        again = ["-n", "0", "--last-failed", "--last-failed-no-failures", "none", f"--junitxml={report}"]
        status = subprocess.run([*command, *again]).returncode
        still = read_failed(cache)
        complete = all_ran(report, len(failed))
        for name in failed:
            second = "failed again" if name in still else "passed alone" if complete else "did not fail again"
            print(f"{name}: failed, then {second}")
        if not complete:
            print("Some of them were skipped or not found in the rerun, which counts as a failure.")
        return status or (0 if complete and not still else TESTS_FAILED)


def read_failed(cache: Path) -> list[str]:
    """Names of the tests that failed last, and of files that could not be collected."""
    file = cache / "v" / "cache" / "lastfailed"
    return sorted(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else []


def all_ran(report: Path, count: int) -> bool:
    """Whether a pytest report contains this many tests, none of them skipped."""
    if not report.is_file():
        return False
    suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    numbers = {name: sum(int(suite.get(name, 0)) for suite in suites) for name in ("tests", "skipped")}
    return numbers == {"tests": count, "skipped": 0}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
