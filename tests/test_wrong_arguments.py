"""Public functions return a result or raise a vidkin error that names the argument, whatever is passed to them."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import vidkin
from tests.support.videos import encode, pan

PACKAGE = Path(vidkin.__file__).parent

WRONG: dict[str, Any] = {
    "None": None,
    "a number": 7,
    "a negative number": -1.5,
    "a huge number": 10**30,
    "not a number": float("nan"),
    "infinity": float("inf"),
    "True": True,
    "no text": "",
    "text": "0:02",
    "bytes": b"x",
    "a list": [],
    "a tuple": (1, 2, 3),
    "a dictionary": {},
    "an object": object(),
    "an array": np.zeros((2, 3)),
    "a path": Path("nowhere.mp4"),
}
# Names of required arguments that are a video while another argument is invalid.
VIDEO = ("path", "query", "target", "first", "second", "source")


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return encode(tmp_path_factory.mktemp("wrong") / "clip.mp4", pan("coffee", 20, width=96, height=64))


@pytest.fixture(scope="module")
def index(clip: Path) -> Iterator[vidkin.Index]:
    with vidkin.Index.open(clip.with_name("i"), extractor="classical", create=True) as index:
        index.add(clip, workers=1)
        yield index


FUNCTIONS = sorted(
    name for name in vidkin.__all__ if callable(getattr(vidkin, name)) and not inspect.isclass(getattr(vidkin, name))
)
METHODS = sorted(
    name
    for name, member in vars(vidkin.Index).items()
    if inspect.isfunction(member) and not name.startswith("_") and name != "close"
)


def test_all_functions_and_methods_are_tested() -> None:
    assert {"compare", "detect_shots", "evaluate", "show"} <= set(FUNCTIONS)
    assert {"add", "search", "match", "duplicates", "recurring", "coverage", "remove"} <= set(METHODS)


# compare takes as long as all others together.
SLOW = {"compare": pytest.mark.thorough}


@pytest.mark.parametrize(
    "name",
    ["open", *METHODS, *(pytest.param(name, marks=SLOW[name]) if name in SLOW else name for name in FUNCTIONS)],
)
def test_invalid_argument_raises_a_vidkin_error(name: str, index: vidkin.Index, clip: Path, tmp_path: Path) -> None:
    function: Callable[..., object] = getattr(vidkin, name) if name in FUNCTIONS else getattr(index, name)
    parameters = inspect.signature(function).parameters.values()
    required: dict[str, Any] = {
        each.name: clip if each.name in VIDEO else None for each in parameters if each.default is each.empty
    }
    required |= {"queries": [clip]} if "queries" in required else {}
    for parameter in parameters:
        for kind, wrong in WRONG.items():
            if parameter.annotation.startswith(("Callable", "On")) and callable(wrong):
                continue
            try:
                answer = function(**{**required, parameter.name: wrong})
                if inspect.isgenerator(answer):
                    list(answer)
            except vidkin.VidkinError:
                continue
            except Exception as error:
                raise AssertionError(f"{parameter.name} = {kind}") from error


# Packages whose names are public according to docs/library.md; `vidkin` itself is tested above.
ROOMS = (
    "datasets",
    "datasets.augmentation",
    "features",
    "files",
    "index",
    "match",
    "media",
    "metric",
    "metric.losses",
    "metric.measures",
    "metric.sampling",
    "models",
    "rendering",
    "review",
    "shots",
    "similarity",
    "training",
    "web",
)
# A valid call would start processes or compute for seconds, so only types without valid values are passed.
LONG = {"detect_many", "build_samples", "build_labelled_samples", "read_photographs", "write_sample_film"}


def test_every_package_is_tested() -> None:
    exporting = [path for path in PACKAGE.rglob("__init__.py") if "\n__all__ = " in path.read_text("utf-8")]
    rooms = {path.parent.relative_to(PACKAGE).as_posix().replace("/", ".") for path in exporting}
    # The names of `vidkin` itself are tested above; `vidkin.cli.main` takes no argument.
    assert rooms - {".", "", "cli"} == set(ROOMS)


def members(room: str) -> dict[str, Callable[..., object]]:
    """The functions and classes of a package, without those exported by `vidkin`, protocols and exceptions."""
    module = importlib.import_module(f"vidkin.{room}" if room else "vidkin")
    found = {name: getattr(module, name) for name in module.__all__ if not room or name not in vidkin.__all__}
    return {
        name: member
        for name, member in found.items()
        if (inspect.isfunction(member) and name not in FUNCTIONS) or (inspect.isclass(member) and is_made(member))
    }


def is_made(kind: type) -> bool:
    """Whether instances of a class are created with its constructor."""
    is_protocol = getattr(kind, "_is_protocol", False)
    return not (is_protocol or inspect.isabstract(kind) or issubclass(kind, BaseException))


def right(parameter: inspect.Parameter, clip: Path) -> object:
    """A value for a required argument while another one is invalid, or None if there is no simple one."""
    annotation = str(parameter.annotation)
    simple = {"PathLike": "out", "str": "text", "int": 1, "float": 1.0, "bool": False, "Positive": 1.0}
    if parameter.name in VIDEO and "PathLike" in annotation:
        return clip
    if annotation in simple:
        return simple[annotation]
    if annotation in ("Tensor", "torch.Tensor"):
        return torch.rand(2, 3)
    if annotation == "AnyArray" or annotation.startswith("NDArray["):
        return np.zeros((2, 3), np.uint8 if "uint8" in annotation else np.float32)
    if annotation.startswith(("Sequence[", "Iterable[", "Collection[", "tuple[")):
        return ()
    return {} if annotation.startswith("Mapping[") else None


# Invalid values where a tensor is accepted.
TENSORS = {
    "a tensor of one axis": torch.zeros(3),
    "a tensor of whole numbers": torch.zeros(2, 3, dtype=torch.int64),
    "a tensor of NaN": torch.full((2, 3), float("nan")),
    "one number as a tensor": torch.tensor(1.0),
}


@pytest.mark.parametrize("room", ["", *ROOMS])
def test_invalid_argument_of_a_package_function_raises_a_vidkin_error(
    room: str, clip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, function in members(room).items():
        parameters = [
            each
            for each in inspect.signature(function).parameters.values()
            if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD, each.POSITIONAL_ONLY)
            and not each.name.startswith("_")
        ]
        required = {
            each.name: None if name in LONG else right(each, clip) for each in parameters if each.default is each.empty
        }
        for parameter in parameters:
            values = {**WRONG, **(TENSORS if "Tensor" in str(parameter.annotation) else {})}
            for kind, wrong in values.items():
                if name in LONG and isinstance(wrong, str | Path):
                    continue
                try:
                    answer = function(**{**required, parameter.name: wrong})
                    if inspect.isgenerator(answer):
                        next(answer, None)
                    if hasattr(answer, "close"):
                        answer.close()
                except vidkin.VidkinError:
                    continue
                except Exception as error:
                    raise AssertionError(f"{name}: {parameter.name} = {kind}") from error


def test_unknown_argument_is_refused_with_the_existing_ones(index: vidkin.Index, clip: Path) -> None:
    with pytest.raises(
        TypeError, match=r"^Index\.search\(\) got an unexpected .* 'limt'; its arguments are query, start"
    ):
        index.search(clip, limt=3)  # type: ignore[call-arg]


def test_error_has_the_argument_the_accepted_and_the_given_value(index: vidkin.Index, clip: Path) -> None:
    for call, message in (
        (lambda: index.search(clip, limit="3"), "limit must be a whole number, got '3'"),
        (lambda: index.search(clip, threshold=None), "threshold must be a number, got None"),
        (lambda: index.search(clip, own=1), "own must be True or False, got 1"),
        (lambda: index.search(clip, start=[1]), r"start must be a number or text or None, got \[1\]"),
        (lambda: index.add(7), "paths must be a path or a list of paths, got 7"),
        (lambda: index.add([clip, 7]), r"paths must be a path or a list of paths, got \[PosixPath\(.*\.\.\.$"),
        (
            lambda: vidkin.detect_shots(np.zeros((4, 8, 8, 3), np.uint8)),
            "source has several frames, so frame_rate must be",
        ),
        (lambda: vidkin.Index.open(7), "path must be a path or a place of an index, got 7"),
    ):
        with pytest.raises(vidkin.InvalidArgumentError, match=message):
            call()


def test_times_may_be_text_as_on_the_command_line(index: vidkin.Index, clip: Path) -> None:
    by_text, by_number = index.search(clip, start="0:01", end="0:02.5"), index.search(clip, start=1, end=2.5)
    assert by_text == by_number
    assert by_text[0].segments[0].query_start >= 1.0
    with pytest.raises(vidkin.InvalidArgumentError, match="noon"):
        index.search(clip, start="noon")


def test_iterators_and_numpy_numbers_are_accepted(index: vidkin.Index, clip: Path) -> None:
    assert index.add(iter([clip]), workers=1).unchanged
    assert len(index.search(clip, limit=np.int64(1), threshold=np.float32(0.2))) == 1
