"""Checks of the installation, including missing and broken parts."""

from __future__ import annotations

import importlib.metadata
import sys
import tomllib
from pathlib import Path

import pytest

from vidkin._base.install import install_command
from vidkin._version import __version__
from vidkin.rendering import machine
from vidkin.rendering.machine import describe_machine, inspect_machine

OTHERS = {"package vidkin-research", "package vidkin-scale"}


def states() -> dict[str, tuple[str, str]]:
    return {finding.name: (finding.state, finding.detail) for finding in inspect_machine()}


def test_every_part_of_the_installation_is_checked() -> None:
    pytest.importorskip("torch")  # if every extra is installed
    findings = states()
    assert findings["vidkin"][1].startswith(f"{__version__}, Python {sys.version_info.major}.")
    # Tests of vidkin do not see the repository's other packages, and need no UMAP, which is not part of `all`.
    lacking = {name for name, (state, _) in findings.items() if state != "ok"}
    assert lacking - {"extra map"} == OTHERS
    assert "h264" in findings["video decoders"][1]
    assert findings["classical extractor"][1].endswith(" dimensions")


def test_failing_part_is_reported_as_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_DECODERS", ("betamax", "h264"))
    monkeypatch.setattr(machine, "_ENCODERS", ("libx264", "betamax"))
    found = states()
    assert found["video decoders"][0] == "broken"
    assert "does not support betamax; run pip install" in found["video decoders"][1]
    assert found["video encoders"][1] == "libx264 (without betamax)"


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_PACKAGES", ("numpy", "betamax"))
    assert states()["packages"][1] == f"not installed: betamax; run {install_command()}"


def test_each_extra_reports_its_purpose_and_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_extractor", lambda name: name)
    monkeypatch.setattr(machine, "EXTRAS", {"arrays": "big arrays", "pictures": "pictures of them"})
    requirements = [
        "numpy>=2.0",
        "numpy>=1; extra == 'arrays'",
        "pillow>=11; extra == 'pictures'",
        "betamax-player>=2; extra == 'pictures'",
        "betamax-player>=2; extra == 'all'",
        "pytest; extra == 'dev'",
    ]
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: requirements)
    assert states()["extra arrays"] == ("ok", f"big arrays; numpy {importlib.metadata.version('numpy')}")
    assert states()["extra pictures"] == (
        "missing",
        f"pictures of them; not installed: betamax-player; install with: {install_command('pictures')}",
    )
    assert "extra all" not in states()
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: None)
    assert states()["extra arrays"][1].endswith(
        f"not installed: its packages; install with: {install_command('arrays')}"
    )


def test_every_extra_for_users_is_listed() -> None:
    content = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    # The others are for the development of vidkin.
    extras = content["project"]["optional-dependencies"].keys() - {"all", "bench", "dev", "docs", "test"}
    assert machine.EXTRAS.keys() == extras


def test_extra_names_its_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    version = importlib.metadata.version

    def without_pillow(name: str) -> str:
        if name == "pillow":
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(importlib.metadata, "version", without_pillow)
    monkeypatch.setattr(machine, "_extractor", lambda name: name)
    assert states()["packages"] == ("broken", f"not installed: pillow; run {install_command()}")


def test_training_packages_are_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    version = importlib.metadata.version
    learning = {
        "torch",
        "torchvision",
        "timm",
        "scipy",
        "scikit-learn",
        "scikit-image",
        "pywavelets",
        "onnx",
        "onnxscript",
    }

    def without(name: str) -> str:
        if name in learning | {"matplotlib"}:
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(importlib.metadata, "version", without)
    monkeypatch.setattr(machine, "_extractor", lambda name: name)
    found = states()
    assert {name for name, (state, _) in found.items() if state != "ok"} - {*OTHERS, "extra map"} == {
        "extra train",
        "extra plots",
    }
    assert found["extra train"][1].startswith("training")
    assert found["extra train"][1].endswith(f"install with: {install_command('train')}")
    assert " torch " not in describe_machine()


def test_failing_part_is_broken_if_required_and_missing_if_optional(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> str:
        raise RuntimeError("no such library\nand a long explanation")

    monkeypatch.setattr(machine, "_extractor", fail)
    monkeypatch.setattr(machine, "_torch", fail)
    findings = states()
    assert findings["vidkin extractor"] == ("broken", "no such library")
    assert findings["extra train"] == ("missing", "no such library")


def test_error_without_a_message_is_reported_by_its_type(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise ImportError

    monkeypatch.setattr(machine, "_extractor", fail)
    assert states()["vidkin extractor"] == ("broken", "ImportError")


def test_missing_codecs_are_listed_and_the_first_one_is_required() -> None:
    assert machine._codecs(("h264", "there is none"), "r") == "h264 (without there is none)"
    with pytest.raises(RuntimeError, match="does not support there is none; run pip install --force-reinstall av"):
        machine._codecs(("there is none", "h264"), "r")


def test_cached_weights_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "none"))
    assert machine._cached_weights().startswith("no weights cached; without a network connection use --weights FILE")
    for name in ("models--timm--resnet50", "models--other--x", "models--timm--a"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert machine._cached_weights() == "weights cached: a, resnet50"


def test_machine_description_names_processor_versions_and_date() -> None:
    line = describe_machine()
    assert f"vidkin {importlib.metadata.version('vidkin')}" in line
    assert " cores, " in line
    assert "\n" not in line
