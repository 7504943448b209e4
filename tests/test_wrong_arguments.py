"""Whatever is passed to a public function, what comes back is a result or an error of ours that names the argument."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vidkin
from tests.support.videos import encode, pan

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
# Names of required arguments -> what stands for them while another one is wrong.
VIDEO = ("path", "query", "target", "first", "second", "source")
# Their own tests have wrong labels and recipes; here a right call would train.
TRAINING = {"train", "train_shots"}


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return encode(tmp_path_factory.mktemp("wrong") / "clip.mp4", pan("coffee", 20, width=96, height=64))


@pytest.fixture(scope="module")
def index(clip: Path) -> Iterator[vidkin.Index]:
    with vidkin.Index.open(clip.with_name("i"), extractor="classical", create=True) as index:
        index.add(clip, workers=1)
        yield index


FUNCTIONS = sorted(
    name
    for name in vidkin.__all__
    if callable(getattr(vidkin, name)) and not inspect.isclass(getattr(vidkin, name)) and name not in TRAINING
)
METHODS = sorted(
    name
    for name, member in vars(vidkin.Index).items()
    if inspect.isfunction(member) and not name.startswith("_") and name not in ("close", "on_cluster")
)


def test_all_of_it_is_walked() -> None:
    assert {"compare", "detect_shots", "evaluate", "show"} <= set(FUNCTIONS)
    assert {"add", "search", "match", "duplicates", "recurring", "coverage", "remove"} <= set(METHODS)


@pytest.mark.parametrize("name", ["open", *METHODS, *FUNCTIONS])
def test_a_wrong_argument_is_an_error_of_ours(name: str, index: vidkin.Index, clip: Path, tmp_path: Path) -> None:
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


# A right call of it starts processes.
STARTING = {"detect_many"}
ROOMS = [
    (room, name)
    for room in ("shots", "media")
    for name in importlib.import_module(f"vidkin.{room}").__all__
    if inspect.isfunction(getattr(importlib.import_module(f"vidkin.{room}"), name)) and name not in STARTING
]


@pytest.mark.parametrize(("room", "name"), ROOMS)
def test_a_wrong_argument_of_a_room_is_an_error_of_ours(
    room: str, name: str, clip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    function: Callable[..., object] = getattr(importlib.import_module(f"vidkin.{room}"), name)
    parameters = inspect.signature(function).parameters.values()
    required = {each.name: clip if each.name in VIDEO else None for each in parameters if each.default is each.empty}
    for parameter in parameters:
        for kind, wrong in WRONG.items():
            try:
                answer = function(**{**required, parameter.name: wrong})
                if inspect.isgenerator(answer):
                    next(answer, None)
            except vidkin.VidkinError:
                continue
            except Exception as error:
                raise AssertionError(f"{parameter.name} = {kind}") from error


def test_a_name_that_no_argument_has_is_refused_with_those_that_there_are(index: vidkin.Index, clip: Path) -> None:
    with pytest.raises(
        TypeError, match=r"^Index\.search\(\) got an unexpected .* 'limt'; its arguments are query, start"
    ):
        index.search(clip, limt=3)  # type: ignore[call-arg]


def test_the_error_names_the_argument_what_is_accepted_and_what_was_given(index: vidkin.Index, clip: Path) -> None:
    for call, message in (
        (lambda: index.search(clip, limit="3"), "limit must be a whole number, got '3'"),
        (lambda: index.search(clip, threshold=None), "threshold must be a number, got None"),
        (lambda: index.search(clip, mirrored=1), "mirrored must be True or False, got 1"),
        (lambda: index.search(clip, start=[1]), r"start must be a number or text or None, got \[1\]"),
        (lambda: index.add(7), "paths must be a path or a list of paths, got 7"),
        (lambda: index.add([clip, 7]), r"paths must be a path or a list of paths, got \[PosixPath\(.*\.\.\.$"),
        (
            lambda: vidkin.detect_shots(np.zeros((4, 8, 8, 3), np.uint8)),
            "source has several frames, so frame_rate must be",
        ),
        (lambda: vidkin.Index.open(7), "an index must be named by a path or an address, got 7"),
    ):
        with pytest.raises(vidkin.InvalidArgumentError, match=message):
            call()


def test_times_are_written_as_on_the_command_line(index: vidkin.Index, clip: Path) -> None:
    by_text, by_number = index.search(clip, start="0:01", end="0:02.5"), index.search(clip, start=1, end=2.5)
    assert by_text == by_number
    assert by_text[0].segments[0].query_start >= 1.0
    with pytest.raises(vidkin.InvalidArgumentError, match="noon"):
        index.search(clip, start="noon")


def test_an_iterator_and_numbers_of_numpy_are_accepted(index: vidkin.Index, clip: Path) -> None:
    assert index.add(iter([clip]), workers=1).unchanged
    assert len(index.search(clip, limit=np.int64(1), threshold=np.float32(0.2))) == 1
