"""Results as JSON."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np
import pytest
import torch

from vidkin.index import Match
from vidkin.rendering.json_values import as_json, matches_as_json, print_json
from vidkin.similarity import Segment


class Color(Enum):
    RED = "red"


@dataclass(frozen=True)
class Box:
    path: Path
    values: tuple[float, ...]


def test_results_become_plain_values() -> None:
    assert as_json(Box(Path("a/b"), (1.0, float("nan")))) == {"path": "a/b", "values": [1.0, None]}
    assert as_json({"t": torch.tensor([[1.0, 0.5]]), "n": np.float32(0.25)}) == {"t": [[1.0, 0.5]], "n": 0.25}
    assert as_json([Color.RED, True, None, {2, 1}]) == ["red", True, None, [1, 2]]
    assert as_json(Segment(0, 1, 2, 3, 0.5)) == {
        "query_start": 0,
        "query_end": 1,
        "target_start": 2,
        "target_end": 3,
        "score": 0.5,
        "speed": 1.0,
        "mirrored": False,
        "query_box": [0, 0, 1, 1],
        "target_box": [0, 0, 1, 1],
    }


def test_matches_have_ranks() -> None:
    first = Match("a.mp4", 0.9, (Segment(0, 1, 2, 3, 0.5, mirrored=True),))
    one, two = matches_as_json([first, Match("b.mp4", 0.1, ())])
    assert (one["rank"], one["path"], one["score"], one["mirrored"]) == (1, "a.mp4", 0.9, True)
    assert [segment["target_end"] for segment in one["segments"]] == [3]
    assert (two["rank"], two["mirrored"], two["segments"]) == (2, False, [])


def test_what_has_no_form_is_refused() -> None:
    with pytest.raises(TypeError, match="object has no form in JSON"):
        as_json(object())


def test_names_survive_the_pipe(capsys) -> None:
    undecodable = os.fsdecode(b"caf\xe9.mp4")
    print_json({"path": undecodable, "other": "山.mp4", "infinite": float("inf")})
    written = capsys.readouterr().out
    assert written.isascii()
    assert json.loads(written) == {"path": undecodable, "other": "山.mp4", "infinite": None}
