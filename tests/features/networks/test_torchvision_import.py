"""torchvision and timm can be imported whatever build of torch stands beside them."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from vidkin.errors import MissingPartError
from vidkin.features import import_timm, import_torchvision
from vidkin.features.networks import torchvision_import as _torchvision


def test_imports_without_a_word() -> None:
    code = (
        "from vidkin.features import import_timm, import_torchvision\n"
        "timm, torchvision = import_timm(), import_torchvision()\n"
        "import torch\n"
        "torch.ops.torchvision.nms, torch.ops.torchvision.qnms\n"
        "torchvision.models.resnet18; timm.create_model\n"
        "from torchvision.models import feature_extraction\n"
        "print('imported')"
    )
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "imported"
    assert run.stderr == ""


def test_a_second_import_is_the_first() -> None:
    assert import_torchvision() is import_torchvision() is sys.modules["torchvision"]
    assert import_timm() is sys.modules["timm"]


def test_a_missing_package_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(name: str) -> object:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(importlib, "import_module", nowhere)
    with pytest.raises(MissingPartError, match="timm is not installed; install it with: pip install timm"):
        _torchvision._import("timm")


def test_a_package_that_is_broken_inside_says_so_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> object:
        raise ModuleNotFoundError("No module named 'something_else'", name="something_else")

    monkeypatch.setattr(importlib, "import_module", broken)
    with pytest.raises(ModuleNotFoundError, match="something_else"):
        _torchvision._import("timm")
