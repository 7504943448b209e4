"""torchvision and timm can be imported with any build of torch."""

from __future__ import annotations

import subprocess
import sys

import pytest

from vidkin.errors import MissingPartError
from vidkin.features import import_timm, import_torchvision


@pytest.mark.large
def test_torchvision_import_prints_nothing() -> None:
    code = (
        "from vidkin.features import import_timm, import_torchvision\n"
        "timm, torchvision = import_timm(), import_torchvision()\n"
        "import torch\n"
        "torch.ops.torchvision.nms, torch.ops.torchvision.qnms\n"
        "torchvision.models.resnet18; timm.create_model\n"
        "from torchvision.models import feature_extraction\n"
        "print('imported')"
    )
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "imported"
    assert run.stderr == ""


def test_second_import_returns_the_same_module() -> None:
    assert import_torchvision() is import_torchvision() is sys.modules["torchvision"]
    assert import_timm() is sys.modules["timm"]


def test_missing_package_error_has_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(MissingPartError, match=r"timm is not installed; install it with: pip install .*\[train\]\""):
        import_timm.__wrapped__()


def test_mismatched_torchvision_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(module: str, *, extra: str) -> None:
        raise RuntimeError("operator torchvision::nms does not exist")

    monkeypatch.setattr("vidkin.features.pretrained.import_part", broken)
    with pytest.raises(
        MissingPartError,
        match=r"torchvision .* is incompatible with torch .* \(operator torchvision::nms does not exist\); reinstall",
    ):
        import_torchvision.__wrapped__()
