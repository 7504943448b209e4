"""The verifier: a small trained network that turns the numbers of a comparison into the probability of a copy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments, check_constructor
from vidkin._base.values import read_json, short_digest
from vidkin.errors import InvalidArgumentError
from vidkin.match.measure import NUMBERS, Measured

__all__ = ["SOFTNESS", "Verifier", "read_verifier", "shipped_verifier"]

Floats = NDArray[np.float32]

# Limits on the size of the network, because the file may be untrusted.
_MAX_UNITS, _MAX_KNOTS = 256, 64
# Outputs are divided by this before the logistic function, so that certain copies do not all score 1.
SOFTNESS = 4.0
# Just below the minimum score of a reported pair.
_MAX_WITHOUT_LINES = 0.19
# Numbers far outside of the range in training are clipped to this many deviations.
_MAX_DEVIATIONS = 6.0


@check_constructor
@dataclass(frozen=True, slots=True, eq=False)
class Verifier:
    """A network with one hidden layer over `NUMBERS`, and a monotone calibration of its output.

    ``score = calibrate(sigmoid((out . tanh(hidden @ ((x - mean) / deviation) + hidden_bias) + out_bias) / SOFTNESS))``

    Attributes:
        mean, deviation: [F] mean and deviation of the numbers in training.
        hidden: [U, F] weights; hidden_bias: [U].
        out: [U] weights; out_bias: a number.
        knots: [K, 2] outputs and the corresponding scores, both increasing from 0 to 1.
    """

    mean: Floats
    deviation: Floats
    hidden: Floats
    hidden_bias: Floats
    out: Floats
    out_bias: float
    knots: Floats

    def __post_init__(self) -> None:
        count, units = len(NUMBERS), len(self.out)
        for name, shape in (
            ("mean", (count,)),
            ("deviation", (count,)),
            ("hidden", (units, count)),
            ("hidden_bias", (units,)),
            ("out", (units,)),
        ):
            values = getattr(self, name)
            if values.shape != shape or not np.isfinite(values).all():
                raise InvalidArgumentError(f"{name} must be {list(shape)} finite numbers, got {list(values.shape)}")
        if not 1 <= units <= _MAX_UNITS or (self.deviation <= 0).any():
            raise InvalidArgumentError(f"a verifier has 1 to {_MAX_UNITS} units and deviations above 0")
        knots = self.knots
        is_curve = knots.ndim == 2 and knots.shape[1:] == (2,) and 2 <= len(knots) <= _MAX_KNOTS
        if not is_curve or (np.diff(knots, axis=0) < 0).any() or knots[0].tolist() != [0, 0]:
            raise InvalidArgumentError("knots must be 2 to 64 pairs that increase from 0, 0 to 1, 1")
        if knots[-1].tolist() != [1, 1]:
            raise InvalidArgumentError("knots must end at 1, 1")

    def __repr__(self) -> str:
        return f"Verifier({short_digest(self.to_dict())})"

    def score(self, measured: Measured) -> float:
        """Score in [0, 1] of a comparison: .7 and more means a copy, below .2 nothing in common."""
        score = float(self.score_numbers(measured.numbers))
        # Similar frames without a line are ranked, but not reported.
        return score if measured.lines else min(score, _MAX_WITHOUT_LINES)

    def score_numbers(self, numbers: Floats) -> NDArray[np.float64]:
        """Scores [...] of the numbers [..., F] of many comparisons, with or without lines."""
        scaled = np.clip((numbers - self.mean) / self.deviation, -_MAX_DEVIATIONS, _MAX_DEVIATIONS)
        units = np.tanh(scaled @ self.hidden.T + self.hidden_bias)
        outputs = (units @ self.out + self.out_bias).astype(np.float64) / SOFTNESS
        raw = 1.0 / (1.0 + np.exp(-np.clip(outputs, -40, 40)))
        return np.asarray(np.interp(raw, self.knots[:, 0], self.knots[:, 1]), np.float64)

    def to_dict(self) -> dict[str, Any]:
        """The network as plain values for JSON."""
        return {
            "numbers": list(NUMBERS),
            "mean": _listed(self.mean),
            "deviation": _listed(self.deviation),
            "hidden": _listed(self.hidden),
            "hidden_bias": _listed(self.hidden_bias),
            "out": _listed(self.out),
            "out_bias": self.out_bias,
            "knots": _listed(self.knots),
        }


@cache
def shipped_verifier() -> Verifier:
    """The verifier that ships with the package, trained on the vectors of the default extractor."""
    return read_verifier(Path(__file__).with_name("data") / "verify.json")


@check_arguments
def read_verifier(path: Path) -> Verifier:
    """Read the network from a JSON file, which also describes its training data.

    Raises:
        InvalidArgumentError: The file is not a verifier, or is one for different numbers.
    """
    try:
        document = read_json(path)
    except (OSError, ValueError) as error:
        raise InvalidArgumentError(f"{path} is no verifier: {error}") from error
    if not isinstance(document, Mapping) or document.get("numbers") != list(NUMBERS):
        raise InvalidArgumentError(f"{path} is no verifier of the numbers that this version measures")
    try:
        arrays = {
            name: np.array(document[name], np.float32)
            for name in ("mean", "deviation", "hidden", "hidden_bias", "out", "knots")
        }
        return Verifier(**arrays, out_bias=float(document["out_bias"]))
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{path} is no verifier: {error}") from error


def _listed(values: Floats) -> Any:
    """Convert to lists of numbers with the digits of single precision."""
    if values.ndim > 1:
        return [_listed(row) for row in values]
    return [float(f"{value:.7g}") for value in values]
