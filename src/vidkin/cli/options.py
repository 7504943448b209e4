"""What commands share: their options and the defaults of these from configuration files, and what they open and write.

A configuration file has a section a command, with the options as names; above the sections what many commands share.
The file of a person is ``vidkin/config.toml`` in the folder that the system has for settings (on Linux
``$XDG_CONFIG_HOME`` or ``~/.config``), or what ``$VIDKIN_CONFIG`` names. ``config.toml`` in the folder of an index
comes before it, but an index may be a stranger's: it can set :data:`OPTIONS_OF_AN_INDEX` only, which change what is
shown, and nothing else.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vidkin._base.files import create_output_folder
from vidkin._base.outputs import check_outputs, describe_source
from vidkin.errors import InvalidArgumentError, MediaError

if TYPE_CHECKING:
    from vidkin.index import Index

PathLike = str | os.PathLike[str]
DEFAULT_INDEX = "collection.vidkin"
INDEX_CONFIG = "config.toml"
"""Name of the file in the folder of an index."""

OPTIONS_OF_AN_INDEX: Mapping[str, frozenset[str]] = {
    "duplicates": frozenset({"format"}),
    "index": frozenset({"list_skipped"}),
    "info": frozenset({"format", "videos"}),
    "match": frozenset({"format", "mirror"}),
    "open": frozenset({"mirror"}),
    "recurring": frozenset({"format"}),
    "search": frozenset({"format", "limit", "mirror", "threshold"}),
}
"""Options that the file of an index may set, by command and parameter; an option that is not listed is refused.

Listed is what changes only which results are shown and how. What names a path, an address, a program or a model, what
writes, and what decides which files a plan removes (``threshold``, ``keep``, ``parts`` and the folders of
``duplicates``) is not.
"""


class Witness(StrEnum):
    """What a score is made of."""

    PICTURE = "picture"
    SOUND = "sound"
    EITHER = "either"
    BOTH = "both"


_VARIABLE = "VIDKIN_CONFIG"
_INDEX_VARIABLE = "VIDKIN_INDEX"
# What may stand above the sections: each command takes what it has.
_SHARED = ("index", "device", "extractor", "weights", "whitening", "mirror", "workers")
# What is decided for one plan at a time.
_NEVER = ("help", "any_file", "made_from")


def parse_time(text: str | float, rate: float | None = None) -> float:
    """Seconds from ``90``, ``90.5``, ``1:30``, ``1:30.5``, ``1:02:03`` or, if the frame rate is known, ``2250f``.

    Raises:
        typer.BadParameter: The text is none of these.
    """
    # PyAV, which the module's package loads, is not needed to print help.
    from vidkin.media.frames import Time

    try:
        return float(Time.parse(text, rate=rate))
    except InvalidArgumentError as error:
        raise typer.BadParameter(str(error)) from error


def parse_moment(text: str | float) -> float | str:
    """Seconds as `parse_time` reads them, or a frame number such as ``250f`` unchanged: its time depends on the file.

    Raises:
        typer.BadParameter: The text is neither.
    """
    from vidkin.media.frames import is_frame_number

    seconds = parse_time(text, rate=1.0)
    return text if isinstance(text, str) and is_frame_number(text) else seconds


def moment_text(text: str | float) -> str:
    """The text of a moment as it was typed, once it is known to be one.

    Raises:
        typer.BadParameter: It is neither a time nor the number of a frame.
    """
    parse_moment(text)
    return str(text).strip()


def check_stretch(start: str | None, end: str | None, path: str | os.PathLike[str] | None = None) -> None:
    """Raise unless --end is after --start, with both as they were typed.

    Args:
        start, end: Moments from `moment_text`; None is the beginning or the end of the video.
        path: The video. Without it, a time and the number of a frame are not compared.

    Raises:
        InvalidArgumentError: ``end`` is not after ``start``.
        MediaError: One of them is the number of a frame, and the video cannot be read.
    """
    if end is None:
        return
    from vidkin.media import time_in
    from vidkin.media.frames import is_frame_number

    typed = ["0" if start is None else start, end]
    if path is not None:
        first, last = (time_in(path, text) for text in typed)
    elif start is not None and is_frame_number(start) != is_frame_number(end):
        return
    else:
        first, last = (parse_time(text, rate=1.0) for text in typed)
    if not last > first:
        given = f"--end {end}" if start is None else f"--start {start} and --end {end}"
        raise InvalidArgumentError(f"--end must be after --start, got {given}")


def parse_setting(text: str, option: str, example: str) -> tuple[str, str]:
    """Name and value of ``NAME=VALUE``.

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


def extractor_name(extractor: str | None, model: Path | None, views: str | None = None) -> str | None:
    """The extractor that --extractor or --model names, with the setting of --views; None for none of them.

    Raises:
        typer.BadParameter: Both are used.
    """
    if model is not None:
        if extractor is not None:
            raise typer.BadParameter("use --model or --extractor, not both")
        extractor = f"model:{model.expanduser()}"
    if views is None:
        return extractor
    name = extractor or "vidkin"
    return f"{name}{'&' if '?' in name else '?'}views={views}"


def toml_or_text(text: str) -> Any:
    """The value of a TOML literal; anything else, such as a bare word, is text."""
    import tomllib

    from vidkin._base.toml import parse_toml

    try:
        return parse_toml(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


ExtractorOption = Annotated[
    str | None,
    typer.Option(
        "--extractor",
        "-e",
        hidden=True,
    ),
]
# Text, because a path would merge the slashes of an address.
IndexOption = Annotated[
    str,
    typer.Option(
        "--index",
        "-i",
        envvar="VIDKIN_INDEX",
        metavar="INDEX",
        help="Folder of the index; with vidkin-scale also an address, such as s3://BUCKET/PREFIX.",
        show_default=DEFAULT_INDEX,
    ),
]


class JsonFormat(StrEnum):
    """How a result is printed that is not a list of things."""

    TABLE = "table"
    JSON = "json"


JsonOption = Annotated[JsonFormat, typer.Option("--format", "-f", metavar="table|json", help="A table, or JSON.")]


MirrorOption = Annotated[bool, typer.Option("--mirror/--no-mirror", hidden=True)]
ByOption = Annotated[
    Witness,
    typer.Option("--by", help="What the score is made of; either is the higher one, both the lower one."),
]
ModelOption = Annotated[
    Path | None,
    typer.Option(
        "--model",
        "-m",
        help="Folder of a trained model: one that orders kinds of things, or a comparator of videos.",
        file_okay=False,
    ),
]


def _use_device(device: str) -> str:
    if device != "auto":
        # ONNX Runtime is not needed to print help.
        from vidkin.features import set_device

        set_device(device)
    return device


DeviceOption = Annotated[str, typer.Option("--device", callback=_use_device, hidden=True)]
WeightsOption = Annotated[Path | None, typer.Option("--weights", dir_okay=False, hidden=True)]
WhiteningOption = Annotated[Path | None, typer.Option("--whitening", dir_okay=False, hidden=True)]
WorkersOption = Annotated[int | None, typer.Option("--workers", "-w", min=1, hidden=True)]


def output_option(help: str) -> Any:
    """The option for the files that a command writes, in the format of their endings; see :func:`parse_outputs`."""
    return typer.Option("--output", "-o", metavar="FILE", help=f"{help} Repeatable.")


def folder_option(name: str, help: str, *, exists: bool = False) -> Any:
    """An option for folders, which must be there if ``exists`` is set."""
    return typer.Option(name, metavar="FOLDER", help=f"{help} Repeatable.", exists=exists, file_okay=not exists)


def threshold_option(help: str, *, show_default: bool | str = True) -> Any:
    """The option for the lowest score that counts."""
    return typer.Option("--threshold", "-t", min=0.0, max=1.0, help=help, show_default=show_default)


def open_index(
    index: PathLike, *, extractor: str | None = None, weights: Path | None = None, cluster: str | None = None
) -> Index:
    """The index of this name, read-only, with the extractor that made it. Use it in a ``with`` block.

    Args:
        index: Folder of the index, or its address on object storage.
        extractor: The model that made the index, if it has moved.
        weights: Its weights, if they have moved.
        cluster: Name of a cluster that searches it, see :mod:`vidkin.index.clusters`; None searches in this process.

    Raises:
        CollectionNotFoundError: There is no index.
        ClusterError: No cluster answers.
        CollectionMismatchError: Another extractor made the index.
    """
    # Help needs no progress bar.
    from vidkin.cli.console import meter

    with meter("opening the index"):
        from vidkin.index import Index

        opened = Index.open(index, extractor=extractor, weights=weights, create=False, read_only=True)
        return opened if cluster is None else opened.on_cluster(cluster)


def open_index_for_writing(
    index: PathLike,
    *,
    extractor: str | None = None,
    weights: Path | None = None,
    whitening: Path | None = None,
    rate: float | None = None,
    store: str | None = None,
    create: bool = False,
) -> Index:
    """The index of this name, writable; a new one if ``create`` is set and there is none.

    Raises:
        CollectionNotFoundError: There is no index and ``create`` is not set.
        CollectionMismatchError: The index was made with another extractor or another rate.
    """
    # Help needs no progress bar.
    from vidkin.cli.console import meter

    with meter("opening the index"):
        from vidkin.index import Index

        return Index.open(
            index,
            extractor=extractor,
            weights=weights,
            whitening=whitening,
            rate=rate,
            store=store,
            create=create,
        )


def has_index(index: PathLike) -> bool:
    """Whether there is anything at the address of an index."""
    from vidkin.index.storage.opening import open_place

    return open_place(index).has_folder()


def parse_outputs(
    files: Sequence[Path] | None, endings: Mapping[str, Sequence[str]], match: Callable[[Path], str] | None = None
) -> dict[str, Path]:
    """Where to write each format, from the values of --output: ``FILE``, or ``FORMAT=FILE``.

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
            name, rest = _by_ending(file, endings) if match is None else match(file), os.fspath(file)
        if name in targets:
            raise InvalidArgumentError(
                f"--output must name one file of a format, got {os.fspath(targets[name])!r} and {rest!r} for {name}"
            )
        targets[name] = Path(rest)
    return targets


def _by_ending(file: Path, endings: Mapping[str, Sequence[str]]) -> str:
    for name, choices in endings.items():
        if file.name.lower().endswith(tuple(choices)):
            return name
    known = ", ".join(ending for choices in endings.values() for ending in choices)
    raise InvalidArgumentError(f"{os.fspath(file)}: the ending chooses the format and must be one of {known}")


def check_targets(
    targets: Mapping[str, Path], what: str, *paths: PathLike, inputs: Iterable[PathLike | None] = ()
) -> dict[str, str]:
    """What each output of :func:`parse_outputs` is made of, by its format, once all of them may be written.

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


def check_inputs(*paths: PathLike) -> None:
    """Raise an error before anything is loaded if an input is not there: loading takes longer than to say so.

    Raises:
        MediaError: There is no such file.
    """
    for path in paths:
        if not os.path.exists(path):
            raise MediaError(os.fspath(path), "there is no such file", temporary=True)


def check_some_exist(paths: Iterable[Path]) -> None:
    """Raise an error if none of these files and folders is there.

    Raises:
        MediaError: There is no such file or folder; names the first.
    """
    names = [os.path.expanduser(path) for path in paths]
    if names and not any(map(os.path.lexists, names)):
        raise MediaError(names[0], "there is no such file or folder; name a folder with videos", temporary=True)


def check_output_file(output: Path | None, source: str) -> None:
    """Create the folder, and raise an error before anything is measured if the figures cannot be written.

    Raises:
        InvalidArgumentError: The folder cannot be created or written to, or the file is not free, see
            :func:`vidkin._base.outputs.open_output`.
    """
    if output is not None:
        create_output_folder(output.absolute().parent)
        check_outputs({"--output": (output, source)})


def config_path() -> Path:
    """Where the configuration file of a person is, or would be."""
    if named := os.environ.get(_VARIABLE):
        return Path(named).expanduser()
    from platformdirs import user_config_path

    return user_config_path("vidkin", appauthor=False) / "config.toml"


def option_defaults(
    command: str, options: Sequence[Any], arguments: Sequence[str], sections: Collection[str]
) -> dict[str, Any]:
    """The defaults that both files give to the options of a command, by the names of its parameters.

    Args:
        command: The name of the command and of the section.
        options: The parameters of the command, as click has them.
        arguments: Arguments after the command, for the index they name.
        sections: Names of all commands, which are the possible sections of a file.

    Raises:
        InvalidArgumentError: A file cannot be read, is not TOML, has a section of no command, or an option that the
            command lacks, or that an index may not set.
    """
    person = config_path()
    defaults = _check_defaults(_read(person), person, command, options, sections)
    # Whoever works in a folder has not asked for the index in it unless the command reads an index.
    if not any(option.name == "index" and option.param_type_name == "option" for option in options):
        return defaults
    index = _named_index(arguments) or os.environ.get(_INDEX_VARIABLE) or defaults.get("index")
    folder = Path(str(index or "collection.vidkin")).expanduser()
    path = folder / INDEX_CONFIG
    shown = _check_defaults(_read(path), path, command, options, sections)
    _refuse_commands(shown, path, command)
    return defaults | shown


def _refuse_commands(defaults: Mapping[str, Any], path: Path, command: str) -> None:
    """Raise InvalidArgumentError if an index sets more than what is shown."""
    allowed = OPTIONS_OF_AN_INDEX.get(command, frozenset())
    refused = sorted(name.replace("_", "-") for name in defaults.keys() - allowed)
    if refused:
        choices = ", ".join(sorted(name.replace("_", "-") for name in allowed)) or "no option"
        raise InvalidArgumentError(
            f"{path}: an index may set {choices} of `vidkin {command}`, got {', '.join(refused)}; if you want it, "
            f"move it to {config_path()} or to the command line, and remove it from the index"
        )


def show_defaults(command: Any, defaults: Mapping[str, Any]) -> Any:
    """The command whose help shows these defaults, also where it has a text (``none``) for those that it came with."""
    shown = copy.copy(command)
    shown.params = [copy.copy(option) for option in command.params]
    for option in shown.params:
        if option.name in defaults:
            option.show_default = True
    return shown


def _check_defaults(
    document: Mapping[str, Any], path: Path, command: str, options: Sequence[Any], sections: Collection[str]
) -> dict[str, Any]:
    """What a file sets for a command, by the names of its parameters."""
    section: Mapping[str, Any] = {}
    shared: dict[str, Any] = {}
    for name, value in document.items():
        if isinstance(value, Mapping):
            if name not in sections:
                raise InvalidArgumentError(
                    f"{path}: [{name}] is not the section of a command; choose from {', '.join(sorted(sections))}"
                )
            if name == command:
                section = value
        else:
            if name not in _SHARED:
                raise InvalidArgumentError(
                    f"{path}: {name} must be in the section of a command, for example below [shots]; above the "
                    f"sections there can be {', '.join(_SHARED)}"
                )
            shared[name] = value
    known = {option.name: option for option in options if option.param_type_name == "option"}
    defaults: dict[str, Any] = {}
    for name, value in {**{name: shared[name] for name in shared if name in known}, **section}.items():
        option = known.get(name.replace("-", "_"))
        if option is None or option.name in _NEVER:
            choices = ", ".join(sorted(name.replace("_", "-") for name in known if name not in _NEVER))
            raise InvalidArgumentError(f"{path}: [{command}] has no option {name!r}; choose from {choices}")
        is_list = isinstance(value, list)
        is_several = option.multiple or (is_list and option.nargs == len(value) > 1)
        if isinstance(value, Mapping) or (is_list and not is_several):
            accepted = "a single value" if option.nargs == 1 else f"a list of {option.nargs} values"
            raise InvalidArgumentError(f"{path}: {name} in [{command}] must be {accepted}, got {value!r}")
        # A text would be taken for a list of its letters.
        defaults[option.name] = [value] if option.multiple and not is_list else value
    return defaults


def _read(path: Path) -> Mapping[str, Any]:
    """The content of a file; nothing if there is no file."""
    import tomllib

    from vidkin._base.toml import read_toml

    try:
        # A pipe would wait for somebody who writes, and a device never ends.
        return read_toml(path) if path.is_file() or path.is_dir() else {}
    except tomllib.TOMLDecodeError as error:
        raise InvalidArgumentError(f"{path}: the configuration is not TOML: {error}") from error
    except (OSError, UnicodeDecodeError) as error:
        cause = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InvalidArgumentError(f"{path}: the configuration cannot be read: {cause}") from error


def _named_index(arguments: Sequence[str]) -> str | None:
    for position, word in enumerate(arguments):
        if word in ("--index", "-i") and position + 1 < len(arguments):
            return arguments[position + 1]
        if word.startswith("--index="):
            return word.removeprefix("--index=")
    return None
