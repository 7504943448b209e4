"""The orientation of a copy: turned by quarters, then mirrored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_constructor
from vidkin.errors import InvalidArgumentError

__all__ = ["PLAIN", "WHOLE", "Box", "Pose"]

Box = tuple[float, float, float, float]
"""Left, top, right and bottom, as shares of the sides of a frame."""
WHOLE: Box = (0.0, 0.0, 1.0, 1.0)
"""The whole frame."""


@check_constructor
@dataclass(frozen=True, slots=True)
class Pose:
    """How a frame is brought into the orientation of another one.

    Attributes:
        flip: Left and right are exchanged, after turning.
        quarter: Quarter turns clockwise, 0 to 3.
    """

    flip: bool = False
    quarter: int = 0

    def __post_init__(self) -> None:
        if self.quarter not in range(4):
            raise InvalidArgumentError(f"quarter must be 0, 1, 2 or 3 quarter turns clockwise, got {self.quarter!r}")

    def compose(self, after: Pose) -> Pose:
        """This pose followed by another one."""
        # A turn after a flip is the opposite turn before it.
        turn = -after.quarter if self.flip else after.quarter
        return Pose(self.flip != after.flip, (self.quarter + turn) % 4)

    @property
    def inverse(self) -> Pose:
        """The pose that undoes this one."""
        return Pose(self.flip, self.quarter if self.flip else -self.quarter % 4)

    def apply(self, images: NDArray[np.generic]) -> NDArray[np.generic]:
        """Frames [..., H, W, C] in this pose."""
        turned = np.rot90(images, -self.quarter, axes=(-3, -2))
        return turned[..., ::-1, :] if self.flip else turned

    def apply_to_box(self, box: Box) -> Box:
        """A box (left, top, right, bottom, as shares of the sides) in a frame that is given this pose."""
        left, top, right, bottom = box
        for _ in range(self.quarter):
            left, top, right, bottom = 1 - bottom, left, 1 - top, right
        return (1 - right, top, 1 - left, bottom) if self.flip else (left, top, right, bottom)


PLAIN = Pose()
"""As it is."""
