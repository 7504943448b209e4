"""Options that several commands share, and how they read values, open indexes and write files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from vidkin._base.files import IMAGE_EXTENSIONS, VIDEO_EXTENSIONS, create_output_folder
from vidkin._base.outputs import check_outputs, describe_source
from vidkin.cli.config import DEFAULT_INDEX
from vidkin.cli.console import meter, wrote
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.rendering.text import FileFormat, write_format

if TYPE_CHECKING:
    from vidkin.index import Index

PathLike = str | os.PathLike[str]
_Result = TypeVar("_Result")


class OutputFormat(StrEnum):
    """Format in which a result is printed."""

    TABLE = "table"
    PLAIN = "plain"
    TSV = "tsv"
    JSON = "json"


class JsonFormat(StrEnum):
    """Format in which a result that is not a list is printed."""

    TABLE = "table"
    JSON = "json"


class ScoreBasis(StrEnum):
    """Evidence used for a score."""

    PICTURE = "picture"
    SOUND = "sound"
    EITHER = "either"
    BOTH = "both"


def rare_option(*names: str, **settings: Any) -> Any:
    """Declare an option that the help does not list; the guide describes it."""
    return typer.Option(*names, hidden=True, **settings)


def output_option(help: str | None = None) -> Any:
    """Declare the option for the files that a command writes, in the format of their endings; see `parse_outputs`."""
    return typer.Option("--output", "-o", metavar="FILE", help=help)


def folder_option(name: str, *, exists: bool = False) -> Any:
    """Declare an option for folders, which must exist if ``exists`` is set."""
    return typer.Option(name, metavar="FOLDER", exists=exists, file_okay=not exists)


def threshold_option(*, show_default: bool | str = True) -> Any:
    """Declare the option for the lowest score that counts."""
    return typer.Option("--threshold", "-t", min=0.0, max=1.0, show_default=show_default)


def time_option(name: str, **settings: Any) -> Any:
    """Declare an option for a time in a video or a frame number."""
    return typer.Option(name, parser=parse_moment, metavar="TIME", **settings)


def _use_device(device: str) -> str:
    if device != "auto":
        # Help does not need ONNX Runtime.
        from vidkin.features import set_device

        set_device(device)
    return device


_FORMAT_HELP = "A table; plain lines without a frame; tab-separated values; JSON."
_INDEX_HELP = "Folder of the index; with vidkin-scale also an address, such as s3://BUCKET/PREFIX."
_MODEL_HELP = "Folder of a trained model: one that orders kinds of things, or a comparator of videos."
_BY_HELP = "What the score is made of; either is the higher one, both the lower one."

FormatOption = Annotated[
    OutputFormat, typer.Option("--format", "-f", metavar="table|plain|tsv|json", help=_FORMAT_HELP)
]
JsonOption = Annotated[JsonFormat, typer.Option("--format", "-f", metavar="table|json", help="A table, or JSON.")]
RareJsonOption = Annotated[JsonFormat, rare_option("--format", "-f")]
# Text, because a path would merge the slashes of an address.
IndexOption = Annotated[
    str,
    typer.Option("--index", "-i", envvar="VIDKIN_INDEX", metavar="INDEX", help=_INDEX_HELP, show_default=DEFAULT_INDEX),
]
ModelOption = Annotated[Path | None, typer.Option("--model", "-m", help=_MODEL_HELP, file_okay=False)]
ByOption = Annotated[ScoreBasis, typer.Option("--by", help=_BY_HELP)]
RareByOption = Annotated[ScoreBasis, rare_option("--by")]
ExtractorOption = Annotated[str | None, rare_option("--extractor", "-e")]
DeviceOption = Annotated[str, rare_option("--device", callback=_use_device)]
WeightsOption = Annotated[Path | None, rare_option("--weights", dir_okay=False)]
WhiteningOption = Annotated[Path | None, rare_option("--whitening", dir_okay=False)]
WorkersOption = Annotated[int | None, rare_option("--workers", "-w", min=1)]


def parse_moment(text: str | float) -> str:
    """Return a time, such as ``90``, ``1:30.5`` or ``1:02:03``, or a frame number, such as ``250f``, as typed.

    Raises:
        typer.BadParameter: The text is neither.
    """
    # Help does not need PyAV, which the module's package loads.
    from vidkin.media.frames import Time

    try:
        Time.parse(text, rate=1.0)
    except InvalidArgumentError as error:
        raise typer.BadParameter(str(error)) from error
    return str(text).strip()


def check_stretch(start: str | None, end: str | None, path: PathLike | None = None) -> None:
    """Raise unless --end is after --start.

    Args:
        start, end: Moments from `parse_moment`; None is the beginning or the end of the video.
        path: The video. Without it, a time and a frame number are not compared.

    Raises:
        InvalidArgumentError: ``end`` is not after ``start``.
        MediaError: One of them is a frame number, and the video cannot be read.
    """
    if end is None:
        return
    from vidkin.media import time_in
    from vidkin.media.frames import Time, is_frame_number

    if path is None and start is not None and is_frame_number(start) != is_frame_number(end):
        return
    first, last = (
        float(Time.parse(text, rate=1.0)) if path is None else time_in(path, text) for text in (start or "0", end)
    )
    if not last > first:
        given = f"--end {end}" if start is None else f"--start {start} and --end {end}"
        raise InvalidArgumentError(f"--end must be after --start, got {given}")


def parse_setting(text: str, option: str, example: str) -> tuple[str, str]:
    """Split ``NAME=VALUE`` into a name and a value.

    Args:
        text: The text typed by the user.
        option: The option it was typed for, for the message.
        example: A correct setting, for the message.

    Raises:
        InvalidArgumentError: The text has no ``=`` or no name.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise InvalidArgumentError(f"{option} must be NAME=VALUE, for example {example}; got {text}")
    return name.strip(), value.strip()


def toml_or_text(text: str) -> Any:
    """Return the value of a TOML literal; anything else, such as a bare word, is text."""
    import tomllib

    from vidkin._base.toml import parse_toml

    try:
        return parse_toml(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def extractor_name(extractor: str | None, model: Path | None) -> str | None:
    """Return the extractor that --extractor or --model names; None if neither is used.

    Raises:
        typer.BadParameter: Both are used.
    """
    if model is None:
        return extractor
    if extractor is not None:
        raise typer.BadParameter("use --model or --extractor, not both")
    return f"model:{model.expanduser()}"


def open_index(index: PathLike, *, writing: bool = False, cluster: str | None = None, **settings: Any) -> Index:
    """Open the index with this name. Use it in a ``with`` block.

    Args:
        index: Folder of the index, or its address on object storage.
        writing: Open it to change it; otherwise read-only.
        cluster: Name of a cluster that searches it, see :mod:`vidkin.index.clusters`; None searches in this process.
        settings: Further arguments of `vidkin.Index.open`: the model that makes or made the index, ``create``, ...

    Raises:
        CollectionNotFoundError: There is no index and ``create`` is not set.
        ClusterError: No cluster answers.
        CollectionMismatchError: The index was made with another extractor or another rate.
    """
    with meter("opening the index"):
        from vidkin.index import Index

        opened = Index.open(index, read_only=not writing, **settings)
        return opened if cluster is None else opened.on_cluster(cluster)


def has_index(index: PathLike) -> bool:
    """Whether there is anything at the address of an index."""
    from vidkin.index.storage.opening import open_place

    return open_place(index).has_folder()


def format_of(file: Path, endings: Mapping[str, Sequence[str]]) -> str:
    """Return the name of the format that the ending of a file chooses.

    Raises:
        InvalidArgumentError: No format has this ending.
    """
    for name, choices in endings.items():
        if file.name.lower().endswith(tuple(choices)):
            return name
    known = ", ".join(ending for choices in endings.values() for ending in choices)
    raise InvalidArgumentError(f"{os.fspath(file)}: the ending chooses the format and must be one of {known}")


def parse_outputs(
    files: Sequence[Path] | None, endings: Mapping[str, Sequence[str]], match: Callable[[Path], str] | None = None
) -> dict[str, Path]:
    """Determine where to write each format from the values of --output: ``FILE``, or ``FORMAT=FILE``.

    Args:
        files: The values.
        endings: Name of each format, and the endings of files that choose it; () for one that has to be named.
        match: Finds the name that an ending chooses, for formats that are not all known; else ``endings`` does.

    Raises:
        InvalidArgumentError: No format has this ending, or one has two files.
    """
    targets: dict[str, Path] = {}
    for file in files or ():
        name, _, rest = os.fspath(file).partition("=")
        if name not in endings or not rest:
            name, rest = format_of(file, endings) if match is None else match(file), os.fspath(file)
        if name in targets:
            raise InvalidArgumentError(
                f"--output must name one file of a format, got {os.fspath(targets[name])!r} and {rest!r} for {name}"
            )
        targets[name] = Path(rest)
    return targets


def check_targets(
    targets: Mapping[str, Path], what: str, *paths: PathLike, inputs: Iterable[PathLike | None] = ()
) -> dict[str, str]:
    """Check that all outputs of :func:`parse_outputs` may be written, and describe the source of each.

    Args:
        targets: The outputs.
        what: What they show.
        paths: What they are made of.
        inputs: Files that the command reads.

    Raises:
        InvalidArgumentError: One may not be written, see :func:`vidkin._base.outputs.check_outputs`.
    """
    sources = {name: describe_source(f"{what} as {name}", *paths) for name in targets}
    check_outputs({f"--output {name}": (path, sources[name]) for name, path in targets.items()}, inputs=inputs)
    return sources


def write_targets(
    targets: Mapping[str, Path], sources: Mapping[str, str], formats: Mapping[str, FileFormat[_Result]], result: _Result
) -> None:
    """Write a result to each output whose format is in the table, and report it."""
    for name in targets.keys() & formats.keys():
        write_format(formats[name], result, targets[name], source=sources[name])
        wrote(targets[name])


def check_output(output: Path | None, source: str, *, inputs: Iterable[PathLike | None] = ()) -> None:
    """Raise an error before any work if the file or folder of --output may not be written.

    Raises:
        InvalidArgumentError: It is not free, or is an input, see :func:`vidkin._base.outputs.check_outputs`.
    """
    check_outputs({"--output": (output, source)}, inputs=inputs)


def check_output_file(output: Path | None, source: str) -> None:
    """Create the folder of a file, and raise an error before anything is measured if the file may not be written.

    Raises:
        InvalidArgumentError: The folder cannot be created or written to, or the file is not free, see
            :func:`vidkin._base.outputs.open_output`.
    """
    if output is not None:
        create_output_folder(output.absolute().parent)
        check_output(output, source)


def check_inputs(*paths: PathLike) -> None:
    """Raise an error before anything is loaded if an input does not exist, because loading takes long.

    Raises:
        MediaError: There is no such file.
    """
    for path in paths:
        if not os.path.exists(path):
            raise MediaError(os.fspath(path), "there is no such file", temporary=True)


def check_some_exist(paths: Iterable[Path]) -> None:
    """Raise an error if none of these files and folders exists.

    Raises:
        MediaError: There is no such file or folder; names the first.
    """
    names = [os.path.expanduser(path) for path in paths]
    if names and not any(map(os.path.lexists, names)):
        raise MediaError(names[0], "there is no such file or folder; name a folder with videos", temporary=True)


def list_media(paths: Iterable[Path]) -> list[Path]:
    """Return the files, replacing each folder with the images and videos in and below it, sorted by name.

    Raises:
        InvalidArgumentError: A folder has neither images nor videos.
    """
    files: list[Path] = []
    for path in paths:
        inside = [path]
        if path.is_dir():
            media = IMAGE_EXTENSIONS | VIDEO_EXTENSIONS
            inside = sorted(file for file in path.rglob("*") if file.suffix.lower() in media and file.is_file())
            if not inside:
                raise InvalidArgumentError(f"{path}: there are no images and no videos in this folder")
        files += inside
    return files
