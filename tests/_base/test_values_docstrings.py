"""Setting descriptions are extracted from docstrings."""

from __future__ import annotations

from vidkin._base.values import describe_settings


class Pan:
    """A pan.

    Attributes:
        size: Diameter in centimeters, see :func:`vidkin.kitchen.measure`;
            ``auto`` asks.
        lid, handle: Extra
            parts.

    Raises:
        ValueError: not an attribute.
    """


def fry(pan: Pan, *, heat: int = 3) -> None:
    """Fry.

    Args:
        pan: A :class:`Pan`.
        heat: From 1 to 6: high is hot.
    """


class Bare:
    pass


def test_each_name_has_its_description_without_markup() -> None:
    assert describe_settings(Pan) == {
        "size": "Diameter in centimeters, see `measure`; `auto` asks.",
        "lid": "Extra parts.",
        "handle": "Extra parts.",
    }
    assert describe_settings(fry) == {"pan": "A `Pan`.", "heat": "From 1 to 6: high is hot."}


def test_without_a_docstring_the_result_is_empty() -> None:
    assert describe_settings(Bare) == {}
