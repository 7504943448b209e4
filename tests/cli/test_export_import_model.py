"""``vidkin import-model``: a public checkpoint becomes a model that the other commands take."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.cli.conftest import Library, run
from tests.support.comparators import passing
from vidkin.models import ComparatorConfig


@pytest.mark.thorough
def test_an_imported_checkpoint_compares_videos(library: Library, tmp_path: Path) -> None:
    state = passing(ComparatorConfig(weighting="attention")).state_dict()
    torch.save({"model": state}, tmp_path / "s2vs.pth")
    words = ("import-model", tmp_path / "s2vs.pth", "--layout", "s2vs", "-o", tmp_path / "model")
    imported = run(*words, "--extractor", "squares", "-f", "json").json
    assert imported["config"]["weighting"] == "attention"
    compared = run("match", library.clip, library.clip, "--model", tmp_path / "model", "-f", "json").json
    assert compared["score"] == pytest.approx(1.0, abs=1e-6)
    before = (tmp_path / "model" / "model.safetensors").read_bytes()
    outcome = run(*words, "--extractor", "squares", status=2)
    assert "there is already a model here; choose a new folder" in outcome.err
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == before


def test_import_refuses_a_checkpoint_of_another_layout(tmp_path: Path) -> None:
    torch.save({"model": passing().state_dict()}, tmp_path / "s2vs.pth")
    words = ("import-model", tmp_path / "s2vs.pth", "-o", tmp_path / "model", "--extractor", "squares")
    outcome = run(*words, "--layout", "hap-vr", status=2)
    assert "must contain weights named comparator_module.*, got" in outcome.err
