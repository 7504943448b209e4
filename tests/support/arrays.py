"""Array helpers shared by many tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def unit(values: NDArray[np.floating]) -> NDArray[np.float32]:
    """Scale vectors [..., D] to unit length."""
    result: NDArray[np.float32] = (values / np.linalg.norm(values, axis=-1, keepdims=True)).astype(np.float32)
    return result
