"""Checks of single arguments, with one form of message."""

from __future__ import annotations

from collections.abc import Iterable

from vidkin.errors import InvalidArgumentError

__all__ = [
    "check_at_least",
    "check_choice",
    "check_not_negative",
    "check_positive",
    "check_range",
    "check_share",
    "check_shot",
]


def check_choice(name: str, value: object, choices: Iterable[object]) -> None:
    """Raise :class:`InvalidArgumentError` unless ``value`` is one of ``choices``."""
    choices = tuple(choices)
    if value not in choices:
        raise InvalidArgumentError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def check_at_least(least: float, **values: float) -> None:
    """Raise :class:`InvalidArgumentError` unless every value is ``least`` or more; NaN is not."""
    for name, value in values.items():
        if not value >= least:
            raise InvalidArgumentError(f"{name} must be at least {least}, got {value}")


def check_not_negative(**values: float) -> None:
    """Raise :class:`InvalidArgumentError` unless every value is 0 or more; NaN is not."""
    check_at_least(0, **values)


def check_positive(**values: float) -> None:
    """Raise :class:`InvalidArgumentError` unless every value is above 0; NaN is not."""
    for name, value in values.items():
        if not value > 0:
            raise InvalidArgumentError(f"{name} must be above 0, got {value}")


def check_share(**values: float) -> None:
    """Raise :class:`InvalidArgumentError` unless every value is in [0, 1]; NaN is not."""
    for name, value in values.items():
        if not 0 <= value <= 1:
            raise InvalidArgumentError(f"{name} must be in [0, 1], got {value}")


def check_range(low: float, high: float) -> None:
    """Raise :class:`InvalidArgumentError` unless ``low`` is below ``high``."""
    if not low < high:
        raise InvalidArgumentError(f"low must be below high, got {low} and {high}")


def check_shot(start: int, end: int, critical: tuple[int, int] | None) -> None:
    """:class:`InvalidArgumentError` unless [start, end) are frames of a shot, and the critical ones are inside it."""
    if not 0 <= start < end:
        raise InvalidArgumentError(f"a shot must have 0 <= start < end, got [{start}, {end})")
    if critical is not None and not start <= critical[0] < critical[1] <= end:
        raise InvalidArgumentError(
            f"critical frames must be inside their shot [{start}, {end}), got [{critical[0]}, {critical[1]})"
        )
