"""``vidkin remove``: remove videos from an index."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from vidkin.cli.console import path_text, say
from vidkin.cli.options import DEFAULT_INDEX, IndexOption, JsonOption
from vidkin.cli.paths import open_index_for_writing
from vidkin.rendering.text import number, print_json


def remove(
    paths: Annotated[list[Path], typer.Argument(help="Videos, or folders for all videos below them.", metavar="PATH")],
    index: IndexOption = DEFAULT_INDEX,
    json: JsonOption = False,
) -> None:
    """Remove videos from the index. The files themselves are not touched.

    What is removed stays removed when its folder is indexed again, until `vidkin index` names it.
    """
    with open_index_for_writing(index) as collection:
        before = collection.info()
        records = collection.remove([os.fspath(path) for path in paths])
        left = collection.info().videos
    videos = before.videos - left
    if json:
        print_json({"index": index, "removed": videos, "removed_broken": records - videos, "videos": left})
        return
    broken = f" and {number(records - videos, 'broken file')}" if records > videos else ""
    say(path_text(index).append(f": {number(videos, 'video')}{broken} removed, {left:,} left"))
