"""What is fuzzed: readers of files and texts of strangers, each as a function from bytes to nothing.

A target returns, or raises one of the errors that its reader documents; anything else, and anything that takes longer
or more memory than the runner allows, is a defect.
"""

from __future__ import annotations

import math
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from vidkin._base.registry import parse_name
from vidkin._base.toml import parse_toml
from vidkin._base.values import parse_json
from vidkin.datasets import read_manifest
from vidkin.errors import VidkinError
from vidkin.files import Journal, read_plan
from vidkin.index import SavedLists, open_place
from vidkin.media import Time, probe
from vidkin.review import REVIEW_FOLDER, read_corrected
from vidkin.web import requested_range

Target = Callable[[bytes], None]


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="vidkin-fuzz-"))
    (folder / REVIEW_FOLDER).mkdir()
    return folder


def _file(content: bytes, name: str) -> Path:
    path = _folder() / name
    path.write_bytes(content)
    return path


def read_a_plan(content: bytes) -> None:
    """A plan of `duplicates`: what is in it names files that the user has."""
    plan = read_plan(_file(content, "plan.json"))
    for group in plan.groups:
        assert "\0" not in group.keep.path


def read_a_log(content: bytes) -> None:
    """The log of `apply`."""
    Journal(_file(content, "plan.json.log")).steps()


def read_decisions(content: bytes) -> None:
    """Cuts that somebody corrected, in the folder of an index."""
    _file(content, f"{REVIEW_FOLDER}/shots-0.json")
    read_corrected(_folder(), "0")


def read_toml_table(content: bytes) -> None:
    """Configuration, recipes and models."""
    try:
        parse_toml(content.decode("utf-8", "surrogateescape"))
    except tomllib.TOMLDecodeError:
        return


def read_json_document(content: bytes) -> None:
    """Everything else that is stored as text."""
    try:
        parse_json(content)
    except ValueError:
        return


def read_a_list(content: bytes) -> None:
    """A CSV of labels."""
    read_manifest(_file(content, "list.csv"))


def read_lists(content: bytes) -> None:
    """Lists of videos in the folder of an index, which are shown and written again."""
    place = open_place(_folder())
    place.write(SavedLists.FILE, content)
    lists = SavedLists.open(place)
    for name in lists.contents:
        assert name.isprintable()
    lists.save(place)
    assert SavedLists.open(place).contents == lists.contents


def read_properties(content: bytes) -> None:
    """The properties of a media file."""
    probe(_file(content, "video.bin"))


def read_a_range(content: bytes) -> None:
    """The header by which players ask for a part of a file."""
    asked = requested_range(content.decode("latin-1"), 1000)
    assert asked is None or 0 <= asked[0] <= asked[1] <= 1000


def read_a_name(content: bytes) -> None:
    """The name of an extractor, with its settings."""
    name = parse_name(content.decode("utf-8", "surrogateescape"))
    name.typed_settings({"views": str, "size": int, "share": float})


def read_a_time(content: bytes) -> None:
    """A moment that a person wrote."""
    text = content.decode("utf-8", "surrogateescape")
    assert 0 <= float(Time.parse(text, rate=25)) < math.inf


TARGETS: Mapping[str, Target] = {
    "decisions": read_decisions,
    "json": read_json_document,
    "list": read_a_list,
    "lists": read_lists,
    "log": read_a_log,
    "name": read_a_name,
    "plan": read_a_plan,
    "properties": read_properties,
    "range": read_a_range,
    "time": read_a_time,
    "toml": read_toml_table,
}
"""Targets by name; the folder ``corpus/<name>`` has inputs that reach new lines, and those that once failed."""


def run(name: str, content: bytes) -> None:
    """Give bytes to a target; the errors that strangers' files may cause are not defects."""
    with suppress(VidkinError):
        TARGETS[name](content)
