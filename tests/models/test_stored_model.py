"""A model that vidkin 0.1 trained and stored is opened as it was: same embeddings, same fingerprint."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from vidkin.models import load_model, model_digest, open_model_extractor, read_model_info

STORED = Path(__file__).parents[1] / "fixtures" / "model-0.1"
DIGEST = "b7753db3bebf3dce7c655899debe6264ba9f9b3d6071edb3abbc848f2efa449a"


def test_the_embeddings_are_those_that_were_recorded() -> None:
    # Three clips of numbers that anyone can make again; the last has two frames.
    clips = (torch.arange(3 * 3 * 3 * 24 * 24) ** 2 % 251).float().view(3, 3, 3, 24, 24) / 250
    with torch.no_grad():
        embeddings = load_model(STORED).embed(clips, torch.tensor([3, 3, 2]))
    recorded = torch.tensor(json.loads((STORED / "embeddings.json").read_text()))
    torch.testing.assert_close(embeddings, recorded, rtol=0, atol=1e-6)


def test_an_index_made_with_it_still_belongs_to_it() -> None:
    assert model_digest(load_model(STORED)) == DIGEST
    assert open_model_extractor(str(STORED)).fingerprint == f"model-clip-{DIGEST[:12]}"


def test_its_notes_are_read() -> None:
    info = read_model_info(STORED)
    assert info.config.kind == "clip"
    assert (info.config.frames, info.config.size, info.config.lstm) == (3, 24, 12)
    assert len(info.class_names) == 14
    assert info.class_names[0] == "portrait/astronaut"
    assert info.metrics == {"validation_qp": 0.25051440329218105}
    assert info.notes["objective"] == ["all_quadlets"]
