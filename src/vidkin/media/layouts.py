"""Boxes for placing images on a larger canvas, and perspective transforms between sets of four points."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

Size = tuple[int, int]  # width, height

Rectangle = tuple[int, int, int, int]  # left, top, right, bottom, in pixels


def center_box(part: Size, canvas: Size) -> Rectangle:
    """Return the box in the center of a canvas for a part of this size."""
    left, top = (canvas[0] - part[0]) // 2, (canvas[1] - part[1]) // 2
    return (left, top, left + part[0], top + part[1])


def split_parts(part: Size, canvas: Size, columns: int, rows: int) -> list[Rectangle]:
    """Return the boxes of the parts of a split screen, row by row; outer parts touch the edges of the canvas."""
    lefts = [column * (canvas[0] - part[0]) // max(1, columns - 1) for column in range(columns)]
    tops = [row * (canvas[1] - part[1]) // max(1, rows - 1) for row in range(rows)]
    return [(left, top, left + part[0], top + part[1]) for top in tops for left in lefts]


def homographies(source: Any, target: Any) -> Any:
    """Solve for the matrices [N, 3, 3] that map each four source points [N, 4, 2] to four target points.

    Both arguments are NumPy arrays or torch tensors, and so is the result.
    """
    xp = array_namespace(source, target)
    x, y = source[..., 0], source[..., 1]
    u, v = target[..., 0], target[..., 1]
    one, zero = xp.ones_like(x), xp.zeros_like(x)
    upper = xp.stack([x, y, one, zero, zero, zero, -u * x, -u * y], axis=-1)
    lower = xp.stack([zero, zero, zero, x, y, one, -v * x, -v * y], axis=-1)
    equations, values = xp.concat([upper, lower], axis=1), xp.concat([u, v], axis=1)
    solution = xp.linalg.solve(equations, values[..., None])[..., 0]
    return xp.reshape(xp.concat([solution, one[:, :1]], axis=1), (-1, 3, 3))
