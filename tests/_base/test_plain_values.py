"""Results as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np
import pytest
import torch

from vidkin._base.plain_values import as_json, fields_as_json
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


def test_what_has_no_form_is_refused() -> None:
    with pytest.raises(TypeError, match="object has no form in JSON"):
        as_json(object())


def test_fields_become_a_dictionary() -> None:
    assert fields_as_json(Box(Path("a"), (2.0,))) == {"path": "a", "values": [2.0]}
