"""Base class of loss modules, distances between rows, and reductions of per-item values.

The options of a loss module (names, types, defaults and checks) are declared by its loss function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Concatenate,
    Literal,
    ParamSpec,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

import torch
from torch import Tensor, nn

from vidkin._base.arguments import check_arguments
from vidkin._base.values import check_choice, check_not_negative, check_positive

P = ParamSpec("P")

Positive = Annotated[float, check_positive]

"""A number above 0."""

NotNegative = Annotated[float, check_not_negative]

"""A number of at least 0."""

# Not options: they describe a batch, as the tensors do, and are passed with each call.
_CALL_PARAMETERS = ("self_offset",)


class Loss(nn.Module):
    """A loss as a module, which stores the options of the function it calls.

    A subclass names its function by decorating ``__init__`` with `options_of`; its ``forward`` calls the function as
    ``compute`` with ``options``. Options of a ``Literal`` type, `Positive` or `NotNegative` are checked on
    construction.
    """

    compute: ClassVar[Callable[..., Tensor]]
    _option_names: tuple[str, ...] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        function = getattr(cls.__init__, "of_function", None)
        if function is not None:
            cls.compute = staticmethod(function)

    @property
    def options(self) -> dict[str, Any]:
        """Names and values of the options, in the order of the constructor."""
        return {name: getattr(self, name) for name in self._option_names}

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self.options.items())

    if TYPE_CHECKING:
        # Type checkers cannot see the attributes that `options_of` sets.
        def __getattr__(self, name: str) -> Any: ...


Constructor = Callable[[Callable[[Any], None]], Callable[Concatenate[Any, P], None]]


@overload
def options_of(
    function: Callable[Concatenate[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, P], Tensor],
) -> Constructor[P]: ...


@overload
def options_of(
    function: Callable[Concatenate[Tensor, Tensor, Tensor, Tensor, P], Tensor],
) -> Constructor[P]: ...


@overload
def options_of(function: Callable[Concatenate[Tensor, Tensor, Tensor, P], Tensor]) -> Constructor[P]: ...


@overload
def options_of(function: Callable[Concatenate[Tensor, Tensor, P], Tensor]) -> Constructor[P]: ...


@overload
def options_of(function: Callable[Concatenate[Tensor, P], Tensor]) -> Constructor[P]: ...


def options_of(function: Callable[..., Tensor]) -> Constructor[...]:
    """Decorate the ``__init__`` of a `Loss` so that it takes and stores the options of a loss function.

    The decorated method runs last, after the options are set: use it for checks that only the module makes.

    Args:
        function: The loss function. All its parameters are options except tensors and ``self_offset``.
    """
    options = _options(function)
    signature = inspect.Signature(list(options.values()))

    def decorate(finish: Callable[[Any], None]) -> Callable[..., None]:
        @functools.wraps(finish)
        def __init__(self: Loss, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            nn.Module.__init__(self)
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            check_options(function, bound.arguments)
            self._option_names = tuple(options)
            for name, value in bound.arguments.items():
                setattr(self, name, value)
            finish(self)

        itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        __init__.__signature__ = inspect.Signature([itself, *options.values()])  # type: ignore[attr-defined]
        __init__.of_function = function  # type: ignore[attr-defined]
        return check_arguments(__init__)

    return decorate


def checked(*together: Callable[..., None]) -> Callable[[Callable[P, Tensor]], Callable[P, Tensor]]:
    """Make a loss function check its options on every call, according to their types.

    Args:
        together: Checks that involve several options, which are the parameters of these functions.
    """

    def decorate(function: Callable[P, Tensor]) -> Callable[P, Tensor]:
        names = tuple(inspect.signature(function).parameters)

        @functools.wraps(function)
        def check_and_call(*args: P.args, **kwargs: P.kwargs) -> Tensor:
            check_options(check_and_call, {**dict(zip(names, args, strict=False)), **kwargs})
            return function(*args, **kwargs)

        check_and_call.together = together  # type: ignore[attr-defined]
        return check_and_call

    return decorate


def check_options(function: Callable[..., Tensor], values: Mapping[str, Any]) -> None:
    """Check options of a loss function; options missing from ``values`` have their defaults.

    Raises:
        InvalidArgumentError: A value is not allowed.
    """
    for name, check in _checks(function).items():
        if name in values:
            check(values[name])
    together: Iterable[Callable[..., None]] = getattr(function, "together", ())
    for check_together in together:
        defaults = _options(function)
        names = inspect.signature(check_together).parameters
        check_together(**{name: values.get(name, defaults[name].default) for name in names})


@functools.cache
def _options(function: Callable[..., Tensor]) -> dict[str, inspect.Parameter]:
    """Parameters of ``function`` that are options."""
    hints = get_type_hints(function)
    return {
        name: parameter
        for name, parameter in inspect.signature(function).parameters.items()
        if Tensor not in (hints[name], *get_args(hints[name])) and name not in _CALL_PARAMETERS
    }


@functools.cache
def _checks(function: Callable[..., Tensor]) -> dict[str, Callable[[Any], None]]:
    """Checks by option name, for the options whose type implies one."""
    checks: dict[str, Callable[[Any], None]] = {}
    hints = get_type_hints(function, include_extras=True)
    for name in _options(function):
        # The arguments of a union cover options that may be None.
        for hint in (hints[name], *get_args(hints[name])):
            if get_origin(hint) is Literal:
                checks[name] = functools.partial(check_choice, name, choices=get_args(hint))
            elif get_origin(hint) is Annotated:
                checks[name] = functools.partial(_check_annotated, name, hint.__metadata__[0])
    return checks


def _check_annotated(name: str, check: Callable[..., None], value: Any) -> None:
    if value is not None:
        check(**{name: value})


Distance = Literal["squared", "euclidean"]


def to_full_precision(tensor: Tensor) -> Tensor:
    """The tensor, converted to float32 if it has half precision, since hinges subtract nearly equal numbers."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def squared_distance(first: Tensor, second: Tensor) -> Tensor:
    """Squared Euclidean distance row by row: [B, D] and [B, D] to [B]."""
    return (first - second).square().sum(dim=-1)


def squared_distances(first: Tensor, second: Tensor) -> Tensor:
    """Squared Euclidean distance of every pair: [N, D] and [M, D] to [N, M], at least 0.

    One matrix product in float32 or better, also under autocast. The mean of the second set is subtracted from both
    first, which changes no distance but preserves precision for sets far from the origin.
    """
    first, second = to_full_precision(first), to_full_precision(second)
    with torch.autocast(device_type=first.device.type, enabled=False):
        origin = second.detach().sum(dim=0) / max(second.shape[0], 1)
        first, second = first - origin, second - origin
        norms = first.square().sum(dim=1)[:, None] + second.square().sum(dim=1)[None, :]
        return (norms - 2.0 * first @ second.T).clamp_min(0.0)


def pairwise_distances(first: Tensor, second: Tensor, distance: Distance) -> Tensor:
    """Squared or plain Euclidean distance of every pair, [N, M]; plain distances of 0 have gradient 0."""
    check_choice("distance", distance, get_args(Distance))
    squared = squared_distances(first, second)
    if distance == "squared":
        return squared
    apart = squared > 0.0
    # The inner where keeps the infinite slope of the root at 0 out of the graph; masking afterward would give NaN.
    return torch.where(apart, torch.where(apart, squared, 1.0).sqrt(), 0.0)


Reduction = Literal["mean", "sum", "none"]


def reduce(values: Tensor, reduction: Reduction) -> Tensor:
    """Mean, sum or the values themselves; the mean of no values is 0 with a gradient, not NaN."""
    check_choice("reduction", reduction, get_args(Reduction))
    if reduction == "none":
        return values
    return values.sum() / max(values.numel(), 1) if reduction == "mean" else values.sum()


def reduce_queries(values: Tensor, counted: Tensor, reduction: Reduction) -> Tensor:
    """Mean or sum over the counted queries (0 with a gradient if there are none), or [N] with zeros."""
    return weighted_mean(values.masked_fill(~counted, 0.0), counted, reduction)


def weighted_mean(values: Tensor, counts: Tensor, reduction: Reduction) -> Tensor:
    """Reduce per-query sums over ``counts`` terms each: "mean" is over all terms, and 0 if there are none."""
    check_choice("reduction", reduction, get_args(Reduction))
    if reduction == "none":
        return values
    total = values.sum()
    return total if reduction == "sum" else total / counts.sum().clamp_min(1)
