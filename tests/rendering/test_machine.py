"""What is found about a machine, also about one on which something is missing."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

import pytest

from vidkin._version import __version__
from vidkin.errors import MissingPartError
from vidkin.rendering import machine
from vidkin.rendering.machine import describe_machine, inspect_machine


def states() -> dict[str, tuple[str, str]]:
    return {finding.name: (finding.state, finding.detail) for finding in inspect_machine()}


def test_every_part_is_tried() -> None:
    findings = states()
    assert findings["vidkin"][1].startswith(f"{__version__}, Python {sys.version_info.major}.")
    assert all(state == "ok" for state, _ in findings.values())
    assert "h264" in findings["video decoders"][1]
    assert findings["classical extractor"][1].endswith(" values")


def test_extras_are_listed_from_the_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_extractor", lambda name: name)
    requirements = [
        "numpy>=2.0",
        "numpy>=1; extra == 'arrays'",
        "pillow>=11; extra == 'pictures'",
        "betamax-player>=2; extra == 'pictures'",
        "betamax-player>=2; extra == 'all'",
        "pytest; extra == 'dev'",
    ]
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: requirements)
    assert states()["extras"] == ("ok", "arrays (without pictures: pip install 'vidkin[pictures]')")
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: requirements[:1])
    assert states()["extras"] == ("ok", "none")


def test_a_package_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    version = importlib.metadata.version

    def without_matplotlib(name: str) -> str:
        if name == "matplotlib":
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(importlib.metadata, "version", without_matplotlib)
    monkeypatch.setattr(machine, "_extractor", lambda name: name)
    assert states()["packages"] == ("broken", "not installed: matplotlib; run pip install vidkin")


def test_a_part_that_fails_is_broken_if_it_is_needed_and_else_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> str:
        raise RuntimeError("no such library\nand a long explanation")

    def lack() -> str:
        raise MissingPartError("timm is not installed; install it with: pip install timm")

    monkeypatch.setattr(machine, "_extractor", fail)
    monkeypatch.setattr(machine, "_timm", lack)
    findings = states()
    assert findings["vidkin extractor"] == ("broken", "no such library")
    assert findings["timm"] == ("missing", "timm is not installed; install it with: pip install timm")


def test_an_error_without_words_has_the_name_of_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise ImportError

    monkeypatch.setattr(machine, "_extractor", fail)
    assert states()["vidkin extractor"] == ("broken", "ImportError")


def test_codecs_that_are_missing_are_listed_but_for_the_first() -> None:
    assert machine._codecs(("h264", "there is none"), "r") == "h264 (without there is none)"
    with pytest.raises(RuntimeError, match="lacks there is none; run pip install --force-reinstall av"):
        machine._codecs(("there is none", "h264"), "r")


def test_cached_weights_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "none"))
    assert machine._timm().endswith("; no weights cached; without a network connection use --weights FILE")
    for name in ("models--timm--resnet50", "models--other--x", "models--timm--a"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert machine._timm().endswith("; weights cached: a, resnet50")


def test_figures_name_processor_versions_and_date() -> None:
    line = describe_machine()
    assert f"vidkin {importlib.metadata.version('vidkin')}" in line
    assert " cores, " in line
    assert "\n" not in line
