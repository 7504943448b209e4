"""The base of loss modules: options are typed fields, checked once, passed to a function of tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from torch import Tensor, nn

from vidkin._base.checks import check_choice, check_not_negative, check_positive

__all__ = ["Loss", "NotNegative", "Positive"]

Positive = Annotated[float, check_positive]
"""A number above 0."""

NotNegative = Annotated[float, check_not_negative]
"""A number of at least 0."""


@dataclass(eq=False, repr=False)
class Loss(nn.Module):
    """A loss as a module: a dataclass whose fields are the options of the function that it calls.

    A subclass is a ``dataclass(eq=False, repr=False)`` (a module is compared by identity, and torch shows it), lists
    its options as fields, names its function as ``compute``, and has a ``forward`` that calls it with ``options``.
    A field of a ``Literal`` type, `Positive` or `NotNegative` is checked when a loss is made; a subclass whose options
    depend on each other checks them in ``__post_init__``.
    """

    compute: ClassVar[Callable[..., Tensor]]

    def __post_init__(self) -> None:
        # After the fields: torch keeps plain attributes that are set before it is ready.
        super().__init__()
        hints = get_type_hints(type(self), include_extras=True)
        for name, value in self.options.items():
            # "A type or None" consists of the type and NoneType.
            for hint in (hints[name], *get_args(hints[name])):
                if get_origin(hint) is Literal:
                    check_choice(name, value, get_args(hint))
                elif get_origin(hint) is Annotated and value is not None:
                    hint.__metadata__[0](**{name: value})

    @property
    def options(self) -> dict[str, Any]:
        """Names and values of the options, in the order of the constructor."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self.options.items())
