"""Options that several commands share, and how their values are parsed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from vidkin.errors import InvalidArgumentError

DEFAULT_INDEX = "collection.vidkin"


def mark_optional_value(args: Sequence[str], option: str, value: re.Pattern[str]) -> list[str]:
    """The words of a command line, an option without a value among them as ``--option=``.

    Args:
        args: The words.
        option: An option that can be used without a value.
        value: Pattern of its value; any other word after the option is not its value.
    """
    marked = list(args)
    for position, word in enumerate(marked):
        if word == "--":
            break
        if word == option and not any(value.fullmatch(after) for after in marked[position + 1 : position + 2]):
            marked[position] = f"{option}="
    return marked


def parse_time(text: str | float, rate: float | None = None) -> float:
    """Seconds from ``90``, ``90.5``, ``1:30``, ``1:30.5``, ``1:02:03`` or, if the frame rate is known, ``2250f``.

    Raises:
        typer.BadParameter: The text is none of these.
    """
    # PyAV, which the module's package loads, is not needed to print help.
    from vidkin.media.time import Time

    try:
        return float(Time.parse(text, rate=rate))
    except InvalidArgumentError as error:
        raise typer.BadParameter(str(error)) from error


def parse_moment(text: str | float) -> float | str:
    """Seconds as `parse_time` reads them, or a frame number such as ``250f`` unchanged: its time depends on the file.

    Raises:
        typer.BadParameter: The text is neither.
    """
    from vidkin.media.time import is_frame_number

    seconds = parse_time(text, rate=1.0)
    return text if isinstance(text, str) and is_frame_number(text) else seconds


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


ExtractorOption = Annotated[
    str | None,
    typer.Option(
        "--extractor",
        "-e",
        help="Extractor of the features: vidkin, classical, timm:<model>, torchvision:<model>, onnx:<file>.",
        show_default="vidkin",
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
        help="Folder of the index, or its address: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX.",
        show_default=DEFAULT_INDEX,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
MirrorOption = Annotated[
    bool, typer.Option("--mirror/--no-mirror", help="Also find copies that are flipped left to right.")
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
WeightsOption = Annotated[
    Path | None,
    typer.Option("--weights", help="Weights of the network, a safetensors file.", dir_okay=False),
]
WhiteningOption = Annotated[
    Path | None,
    typer.Option("--whitening", help="Whitening of the features, a file from `vidkin whiten`.", dir_okay=False),
]
