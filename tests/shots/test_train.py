"""``vidkin.train_shots`` calls the trainer of another package."""

from __future__ import annotations

import importlib.metadata

import pytest

import vidkin
from vidkin._base.install import install_command
from vidkin.shots import train


def test_trainer_of_an_installed_package_is_called() -> None:
    assert vidkin.train_shots("labels.json", "short", output="model") == ["labels.json", "short", "model", True]


def test_error_without_a_trainer_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "entry_points", lambda **_: importlib.metadata.EntryPoints())
    with pytest.raises(vidkin.VidkinError) as raised:
        vidkin.train_shots("labels.json")
    assert str(raised.value) == (
        "vidkin.train_shots needs the package vidkin-research, which is not installed; install it with: "
        f"{install_command(package='vidkin-research')}"
    )
