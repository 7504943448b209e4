"""Install hints give a command that works without a package index."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from vidkin._base import install
from vidkin._base.install import install_command, is_checkout

ROOT = Path(__file__).resolve().parents[2]


def test_command_names_the_checkout_and_works_in_every_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "_ROOT", ROOT)  # these tests also run on an installed wheel
    assert is_checkout()
    assert install_command() == f'pip install -e "{ROOT.as_posix()}"'
    assert install_command("train") == f'pip install -e "{ROOT.as_posix()}[train]"'
    assert install_command("hashes", "vidkin-research") == f'pip install -e "{ROOT.as_posix()}/research[hashes]"'
    assert install_command(package="vidkin-scale") == f'pip install -e "{ROOT.as_posix()}/scale"'


def test_command_for_an_installed_wheel_mentions_a_clone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(install, "_ROOT", tmp_path)
    assert not is_checkout()
    assert install_command() == 'pip install "." (in a clone of vidkin)'
    assert install_command("train") == 'pip install ".[train]" (in a clone of vidkin)'
    assert install_command(package="vidkin-research") == 'pip install "./research" (in a clone of vidkin)'
    assert install_command(package="vidkin-scale") == 'pip install "./scale" (in a clone of vidkin)'


def test_command_in_a_bundle_says_that_packages_cannot_be_added(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(install, "_ROOT", tmp_path)
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert install_command("otio") == 'pip install ".[otio]" (in a clone of vidkin; this bundle cannot be extended)'


def test_no_hint_or_page_installs_vidkin_from_a_package_index() -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "src", "research/src", "scale/src", "docs", "research/benchmarks", "*.md"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    if tracked.returncode:
        pytest.skip("this is not a clone")
    files = [
        ROOT / name for name in tracked.stdout.splitlines() if name.endswith((".py", ".md", ".toml", ".html", ".js"))
    ]
    assert len(files) > 100
    by_name = re.compile(r"pip install (?:-\S+ )*[\"']?vidkin\b")
    assert [str(file) for file in files if file.is_file() and by_name.search(file.read_text(encoding="utf-8"))] == []
