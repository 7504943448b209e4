"""The verifier: a small trained network that turns the pair features of a comparison into a copy score."""

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
# Temperature: divides the outputs before the logistic function, so that not all certain copies score 1.
SOFTNESS = 4.0
# Just below 0.2, the minimum score at which a pair is reported.
_MAX_WITHOUT_LINES = 0.19
# Standardized features are clipped to this range, because the network does not extrapolate reliably.
_MAX_DEVIATIONS = 6.0


@check_constructor
@dataclass(frozen=True, slots=True, eq=False)
class Verifier:
    """A network with one hidden layer on the pair features `NUMBERS`, and a monotone calibration of its output.

    ``score = calibrate(sigmoid((out . tanh(hidden @ ((x - mean) / deviation) + hidden_bias) + out_bias) / SOFTNESS))``

    Attributes:
        mean, deviation: [F] mean and standard deviation of the features in the training data.
        hidden: [U, F] weights of the hidden layer; hidden_bias: [U].
        out: [U] weights of the output; out_bias: a scalar.
        knots: [K, 2] network outputs and the corresponding scores, both nondecreasing from 0 to 1.

    Raises:
        InvalidArgumentError: A shape is wrong, a value is not finite, or the knots are not monotone.
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
            raise InvalidArgumentError(f"a verifier must have 1 to {_MAX_UNITS} hidden units and positive deviations")
        knots = self.knots
        is_curve = knots.ndim == 2 and knots.shape[1:] == (2,) and 2 <= len(knots) <= _MAX_KNOTS
        if not is_curve or (np.diff(knots, axis=0) < 0).any() or knots[0].tolist() != [0, 0]:
            raise InvalidArgumentError(f"knots must be 2 to {_MAX_KNOTS} nondecreasing pairs from (0, 0) to (1, 1)")
        if knots[-1].tolist() != [1, 1]:
            raise InvalidArgumentError("knots must end at (1, 1)")

    def __repr__(self) -> str:
        return f"Verifier({short_digest(self.to_dict())})"

    def score(self, measured: Measured) -> float:
        """Score in [0, 1] of a comparison: 0.7 or more means a copy, below 0.2 unrelated."""
        score = float(self.score_numbers(measured.numbers))
        # Pairs with similar frames but no line are still ranked, but not reported.
        return score if measured.lines else min(score, _MAX_WITHOUT_LINES)

    def score_numbers(self, numbers: Floats) -> NDArray[np.float64]:
        """Scores [...] for pair features [..., F], regardless of whether there are lines."""
        scaled = np.clip((numbers - self.mean) / self.deviation, -_MAX_DEVIATIONS, _MAX_DEVIATIONS)
        units = np.tanh(scaled @ self.hidden.T + self.hidden_bias)
        outputs = (units @ self.out + self.out_bias).astype(np.float64) / SOFTNESS
        raw = 1.0 / (1.0 + np.exp(-np.clip(outputs, -40, 40)))
        return np.asarray(np.interp(raw, self.knots[:, 0], self.knots[:, 1]), np.float64)

    def to_dict(self) -> dict[str, Any]:
        """Return the network as JSON-ready values."""
        return {
            "numbers": list(NUMBERS),
            "mean": _to_lists(self.mean),
            "deviation": _to_lists(self.deviation),
            "hidden": _to_lists(self.hidden),
            "hidden_bias": _to_lists(self.hidden_bias),
            "out": _to_lists(self.out),
            "out_bias": self.out_bias,
            "knots": _to_lists(self.knots),
        }


@cache
def shipped_verifier() -> Verifier:
    """Return the verifier bundled with the package, trained on features of the default extractor."""
    return read_verifier(Path(__file__).with_name("data") / "verify.json")


@check_arguments
def read_verifier(path: Path) -> Verifier:
    """Read a verifier from a JSON file, which also describes its training data.

    Raises:
        InvalidArgumentError: The file does not contain a verifier, or contains one for different pair features.
    """
    try:
        document = read_json(path)
    except (OSError, ValueError) as error:
        raise InvalidArgumentError(f"{path} is not a verifier: {error}") from error
    if not isinstance(document, Mapping) or document.get("numbers") != list(NUMBERS):
        raise InvalidArgumentError(f"{path} is not a verifier for the pair features of this version")
    try:
        arrays = {
            name: np.array(document[name], np.float32)
            for name in ("mean", "deviation", "hidden", "hidden_bias", "out", "knots")
        }
        return Verifier(**arrays, out_bias=float(document["out_bias"]))
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{path} is not a verifier: {error}") from error


def _to_lists(values: Floats) -> Any:
    """Convert an array to nested lists of floats with the 7 significant digits of single precision."""
    if values.ndim > 1:
        return [_to_lists(row) for row in values]
    return [float(f"{value:.7g}") for value in values]
