"""torchvision and timm can be imported whatever build of torch stands beside them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from vidkin.errors import MissingPartError
from vidkin.features import import_timm, import_torchvision


@pytest.mark.large
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
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "imported"
    assert run.stderr == ""


def test_a_second_import_is_the_first() -> None:
    assert import_torchvision() is import_torchvision() is sys.modules["torchvision"]
    assert import_timm() is sys.modules["timm"]


def test_a_missing_package_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(MissingPartError, match=r"timm is not installed; install it with: pip install .*\[train\]\""):
        import_timm.__wrapped__()


def test_a_torchvision_that_does_not_fit_torch_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(module: str, *, extra: str) -> None:
        raise RuntimeError("operator torchvision::nms does not exist")

    monkeypatch.setattr("vidkin.features.pretrained.import_part", broken)
    with pytest.raises(
        MissingPartError,
        match=r"torchvision .* does not fit torch .* \(operator torchvision::nms does not exist\); install both anew",
    ):
        import_torchvision.__wrapped__()
