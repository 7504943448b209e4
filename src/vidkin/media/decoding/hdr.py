"""Map high dynamic range and wide gamut to 8-bit RGB (BT.709), as for a standard screen."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

PQ: Final = 16
HLG: Final = 18
BT2020_PRIMARIES: Final = 9

# Diffuse white of HDR video in candela per square meter (ITU-R BT.2408).
WHITE: Final = 203.0
KNEE: Final = 0.75

# Linear BT.2020 to linear BT.709 (ITU-R BT.2087).
TO_709: Final = np.array(
    [[1.6605, -0.5876, -0.0728], [-0.1246, 1.1329, -0.0083], [-0.0182, -0.1006, 1.1187]], dtype=np.float32
)
# Linear light in steps of 1/4095 to 8 bits, for gamma 2.2.
_GAMMA: Final = np.rint((np.arange(4096) / 4095) ** (1 / 2.2) * 255).astype(np.uint8)


def needs_mapping(transfer: int, primaries: int) -> bool:
    """Whether video with these codes (ITU-T H.273) looks wrong when its values are shown unchanged."""
    return transfer in (PQ, HLG) or primaries == BT2020_PRIMARIES


def to_standard_range(image: NDArray[np.uint16], transfer: int, primaries: int) -> NDArray[np.uint8]:
    """Map [H, W, 3] 16-bit R'G'B' of HDR or BT.2020 video to 8-bit BT.709.

    Light is made linear (SMPTE ST 2084, or ARIB STD-B67 at 1,000 cd/m2), converted to BT.709 primaries, scaled so that
    diffuse white is 1, and light above 3/4 is rolled off smoothly toward 1 without changing the hue: f(x) = k + (1 -
    k) (1 - exp(-(x - k) / (1 - k))) for x > k. Values are then encoded for gamma 2.2.
    """
    light: NDArray[Any] = _linear_table(transfer)[image]
    if transfer == HLG:
        luminance = light @ np.array([0.2627, 0.6780, 0.0593], dtype=np.float32)
        light = (
            light * (np.maximum(luminance, 1e-6)[..., None] ** np.float32(0.2)) * np.float32(1000.0 / WHITE)
        )
    if primaries == BT2020_PRIMARIES:
        light = np.maximum(light @ TO_709.T, 0)
    if transfer in (PQ, HLG):
        brightest = light.max(axis=-1, keepdims=True)
        over = np.maximum(brightest - KNEE, 0) / (1 - KNEE)
        rolled = KNEE + (1 - KNEE) * (1 - np.exp(-over))
        light = np.where(brightest > KNEE, light * (rolled / np.maximum(brightest, 1e-6)), light)
    codes = np.rint(np.clip(light, 0, 1) * 4095).astype(np.uint16)
    return np.asarray(_GAMMA[codes])


@cache
def _linear_table(transfer: int) -> NDArray[np.float32]:
    """Light for each of the 65,536 codes: diffuse white is 1 (for HLG: scene light, peak is 1)."""
    value = np.arange(65536) / 65535
    if transfer == PQ:
        power = value ** (1 / 78.84375)
        light = (np.maximum(power - 0.8359375, 0) / (18.8515625 - 18.6875 * power)) ** (1 / 0.1593017578125)
        light = light * 10000.0 / WHITE
    elif transfer == HLG:
        low = value**2 / 3
        high = (np.exp((value - 0.55991073) / 0.17883277) + 0.28466892) / 12
        light = np.where(value <= 0.5, low, high)
    else:
        light = value**2.2
    return light.astype(np.float32)
