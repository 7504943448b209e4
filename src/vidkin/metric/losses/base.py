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

# These are not options: they describe a batch, like the tensors, and are passed with each call.
_CALL_PARAMETERS = ("self_offset",)


class Loss(nn.Module):
    """A loss as a module, which stores the options of the function that it calls.

    A subclass specifies its function by decorating ``__init__`` with `options_of`; its ``forward`` calls the function
    as ``compute`` with ``options``. Options of type ``Literal``, `Positive` or `NotNegative` are checked on
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
        # Type checkers cannot see the attributes set by `options_of`.
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
    """Decorate the ``__init__`` of a `Loss` so that it accepts and stores the options of a loss function.

    The decorated method runs last, after the options are set; use it for checks that only the module needs.

    Args:
        function: The loss function. All its parameters except tensors and ``self_offset`` are options.
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
        together: Checks that involve several options, which are the parameters of the check functions.
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
    """Check the options of a loss function; options missing from ``values`` have their default values.

    Raises:
        InvalidArgumentError: A value is invalid.
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
    """Return the parameters of ``function`` that are options."""
    hints = get_type_hints(function)
    return {
        name: parameter
        for name, parameter in inspect.signature(function).parameters.items()
        if Tensor not in (hints[name], *get_args(hints[name])) and name not in _CALL_PARAMETERS
    }


@functools.cache
def _checks(function: Callable[..., Tensor]) -> dict[str, Callable[[Any], None]]:
    """Return the checks by option name, for options whose type implies a check."""
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
    """Convert half precision to float32, because hinges subtract nearly equal numbers; return others unchanged."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def squared_distance(first: Tensor, second: Tensor) -> Tensor:
    """Compute squared Euclidean distances row by row: [B, D] and [B, D] to [B]."""
    return (first - second).square().sum(dim=-1)


def squared_distances(first: Tensor, second: Tensor) -> Tensor:
    """Compute the squared Euclidean distances of all pairs: [N, D] and [M, D] to [N, M], at least 0.

    This is one matrix product in float32 or better, even under autocast. The mean of the second set is first subtracted
    from both sets, which does not change distances but preserves precision for sets far from the origin.
    """
    first, second = to_full_precision(first), to_full_precision(second)
    with torch.autocast(device_type=first.device.type, enabled=False):
        origin = second.detach().sum(dim=0) / max(second.shape[0], 1)
        first, second = first - origin, second - origin
        norms = first.square().sum(dim=1)[:, None] + second.square().sum(dim=1)[None, :]
        return (norms - 2.0 * first @ second.T).clamp_min(0.0)


def pairwise_distances(first: Tensor, second: Tensor, distance: Distance) -> Tensor:
    """Compute squared or plain Euclidean distances of all pairs, [N, M]; plain distances of 0 have gradient 0."""
    check_choice("distance", distance, get_args(Distance))
    squared = squared_distances(first, second)
    if distance == "squared":
        return squared
    apart = squared > 0.0
    # The inner where keeps the infinite slope of the root at 0 out of the graph; masking afterward would give NaN.
    return torch.where(apart, torch.where(apart, squared, 1.0).sqrt(), 0.0)


Reduction = Literal["mean", "sum", "none"]


def reduce(values: Tensor, reduction: Reduction) -> Tensor:
    """Return the mean, the sum, or the values themselves; the mean of no values is 0 with a gradient, not NaN."""
    check_choice("reduction", reduction, get_args(Reduction))
    if reduction == "none":
        return values
    return values.sum() / max(values.numel(), 1) if reduction == "mean" else values.sum()


def reduce_queries(values: Tensor, counted: Tensor, reduction: Reduction) -> Tensor:
    """Reduce over the counted queries (0 with a gradient if there are none), or return [N] with zeros elsewhere."""
    return weighted_mean(values.masked_fill(~counted, 0.0), counted, reduction)


def weighted_mean(values: Tensor, counts: Tensor, reduction: Reduction) -> Tensor:
    """Reduce per-query sums over ``counts`` terms each: "mean" is over all terms, and 0 if there are none."""
    check_choice("reduction", reduction, get_args(Reduction))
    if reduction == "none":
        return values
    total = values.sum()
    return total if reduction == "sum" else total / counts.sum().clamp_min(1)
