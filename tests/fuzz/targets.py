"""Fuzz targets: readers of untrusted files and strings, each as a function of bytes.

A target returns, or raises one of the errors that its reader documents. Any other exception, and exceeding the time or
memory limit of the runner, is a bug.
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
    """Read a plan of `duplicates`, which names files of the user."""
    plan = read_plan(_file(content, "plan.json"))
    for group in plan.groups:
        assert "\0" not in group.keep.path


def read_a_log(content: bytes) -> None:
    """Read a log of `apply`."""
    Journal(_file(content, "plan.json.log")).steps()


def read_decisions(content: bytes) -> None:
    """Read corrected cuts from an index folder."""
    _file(content, f"{REVIEW_FOLDER}/shots-0.json")
    read_corrected(_folder(), "0")


def read_toml_table(content: bytes) -> None:
    """Parse TOML, the format of configuration, recipes and models."""
    try:
        parse_toml(content.decode("utf-8", "surrogateescape"))
    except tomllib.TOMLDecodeError:
        return


def read_json_document(content: bytes) -> None:
    """Parse JSON, the format of all other text files."""
    try:
        parse_json(content)
    except ValueError:
        return


def read_a_list(content: bytes) -> None:
    """Read a CSV file of labels."""
    read_manifest(_file(content, "list.csv"))


def read_lists(content: bytes) -> None:
    """Read saved lists of videos from an index folder, which are displayed and written back."""
    place = open_place(_folder())
    place.write(SavedLists.FILE, content)
    lists = SavedLists.open(place)
    for name in lists.contents:
        assert name.isprintable()
    lists.save(place)
    assert SavedLists.open(place).contents == lists.contents


def read_properties(content: bytes) -> None:
    """Read the properties of a media file."""
    probe(_file(content, "video.bin"))


def read_a_range(content: bytes) -> None:
    """Parse the Range header of a player."""
    asked = requested_range(content.decode("latin-1"), 1000)
    assert asked is None or 0 <= asked[0] <= asked[1] <= 1000


def read_a_name(content: bytes) -> None:
    """Parse an extractor name with settings."""
    name = parse_name(content.decode("utf-8", "surrogateescape"))
    name.typed_settings({"views": str, "size": int, "share": float})


def read_a_time(content: bytes) -> None:
    """Parse a time entered by a user."""
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
    """Run a target on these bytes; errors documented for untrusted files are not bugs."""
    with suppress(VidkinError):
        TARGETS[name](content)
