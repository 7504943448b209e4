"""The options of ``vidkin shots``, and how their values are parsed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from vidkin.errors import InvalidArgumentError

if TYPE_CHECKING:
    from vidkin.shots import ExportSettings, ImageFormat, Transition

__all__ = [
    "CopyOption",
    "DetectorOption",
    "DropFrameOption",
    "EndOption",
    "ExportOption",
    "ImageFormatOption",
    "ImageSizeOption",
    "ImagesOption",
    "LimitOption",
    "MergeShortOption",
    "MinLengthOption",
    "OldExportOption",
    "QualityOption",
    "SplitOption",
    "StartOption",
    "TemplateOption",
    "ThresholdOption",
    "TypesOption",
    "WorkersOption",
    "check_companions",
    "make_export_settings",
    "parse_exports",
    "parse_types",
    "with_chosen_threshold",
]

DetectorOption = Annotated[
    str,
    typer.Option("--detector", "-d", help="Name of a shot detector, or the folder of a trained model."),
]
ThresholdOption = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        help="How sure the detector has to be; higher finds fewer transitions. A probability above 0 and below 1 for "
        "the default detector, a difference for content, adaptive and shotdetect.",
        show_default="as trained",
    ),
]
TypesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--types",
        "-t",
        help="Report only these transitions: hard, dissolve, fade, wipe; several with commas or options.",
        show_default="all",
    ),
]
MinLengthOption = Annotated[
    float | None,
    typer.Option(
        "--min-length",
        help="Leave out shots of fewer seconds.",
        min=0,
        metavar="SECONDS",
        show_default="none",
    ),
]
MergeShortOption = Annotated[
    bool,
    typer.Option(
        "--merge-short",
        help="Join shots shorter than --min-length to a neighbor instead of leaving them out.",
    ),
]
StartOption = Annotated[
    str | None,
    typer.Option(
        "--start",
        help="Start at this time: seconds, M:SS or H:MM:SS.",
        metavar="TIME",
        show_default="its beginning",
    ),
]
EndOption = Annotated[
    str | None,
    typer.Option("--end", help="Stop at this time.", metavar="TIME", show_default="its end"),
]
ExportOption = Annotated[
    list[str] | None,
    typer.Option(
        "--export",
        help="Write the shots to this file; its ending chooses the format (.csv, .edl, .otio, .html, .png; a wrong one "
        "lists all). May be repeated. FORMAT=PATH names the format; csv=- is standard output.",
        metavar="FILE",
    ),
]
# Older spellings of --export, one a format.
OldExportOption = Annotated[Path | None, typer.Option(hidden=True)]
DropFrameOption = Annotated[
    bool,
    typer.Option("--drop-frame", help="Drop-frame time code in the EDL (29.97 and 59.94 only).", hidden=True),
]
SplitOption = Annotated[
    Path | None,
    typer.Option(
        "--split",
        help="Write every shot as a file in this folder, exact to the frame: only frames that cannot be copied are "
        "encoded.",
    ),
]
CopyOption = Annotated[
    bool,
    typer.Option(
        "--copy",
        help="With --split: write without encoding; pieces then begin at key frames, before their shots.",
    ),
]
QualityOption = Annotated[
    int,
    typer.Option(
        "--quality",
        help="Quality of encoded frames, 1 is best (the CRF of x264).",
        min=1,
        max=51,
        hidden=True,
    ),
]
ImagesOption = Annotated[
    int,
    typer.Option("--images", help="Images of each shot in --thumbnails, spread over it.", min=1, hidden=True),
]
ImageSizeOption = Annotated[
    int,
    typer.Option(
        "--image-size",
        help="Pixels at the shorter side of these images; 0 keeps the video's size.",
        min=0,
        hidden=True,
    ),
]
ImageFormatOption = Annotated[
    str, typer.Option("--image-format", help="Format of these images: jpg, png, webp.", hidden=True)
]
TemplateOption = Annotated[
    str | None,
    typer.Option(
        "--template",
        help="Names of pieces and images, with the fields name, shot, shots, image, kind, start, end, start_frame and "
        "end_frame.",
        show_default="{name}-{shot:03d}",
        hidden=True,
    ),
]
LimitOption = Annotated[
    int | None,
    typer.Option("--limit", "-n", min=1, help="Show at most this many shots a video.", show_default="all"),
]
WorkersOption = Annotated[
    int | None,
    typer.Option("--workers", "-w", min=1, help="Processes for several videos.", show_default="one per core"),
]


def parse_types(texts: Sequence[str] | None) -> tuple[Transition, ...]:
    """The transitions to report, from texts such as ``hard,fade``; all of them by default.

    Raises:
        InvalidArgumentError: One is unknown.
    """
    from vidkin.shots import TRANSITIONS

    words = [word.strip() for text in texts or () for word in text.split(",") if word.strip()]
    unknown = [word for word in words if word not in TRANSITIONS]
    if unknown:
        raise InvalidArgumentError(f"--types must be among {', '.join(TRANSITIONS)}, got {unknown[0]!r}")
    return tuple(name for name in TRANSITIONS if name in words) or TRANSITIONS


def parse_exports(texts: Sequence[str] | None, old: Mapping[str, Path | None]) -> dict[str, Path]:
    """Where to write each format: values of ``--export``, and those of its older spellings by format.

    Raises:
        InvalidArgumentError: A format is unknown, or has two files.
    """
    targets = {name: path for name, path in old.items() if path is not None}
    if not texts:
        return targets
    from vidkin.shots import match_shot_format, shot_format_names

    for text in texts:
        name, equals, rest = text.partition("=")
        if not equals or name not in shot_format_names():
            name, rest = match_shot_format(text), text
        if name in targets:
            raise InvalidArgumentError(
                f"--export must name one file of a format, got {os.fspath(targets[name])!r} and {rest!r} for {name}"
            )
        targets[name] = Path(rest)
    return targets


def check_companions(context: typer.Context, targets: Mapping[str, Path]) -> None:
    """Raise :class:`InvalidArgumentError` if an option was given without the one that it changes."""
    given = context.params

    def is_typed(option: str) -> bool:
        # In a configuration file it is a preference for whenever there is something that it changes.
        source = context.get_parameter_source(option)
        return bool(given[option]) and source is not None and source.name == "COMMANDLINE"

    if is_typed("drop_frame") and "edl" not in targets:
        raise InvalidArgumentError("--drop-frame needs --export FILE.edl, whose time code it changes")
    if given["merge_short"] and given["min_length"] is None:
        raise InvalidArgumentError("--merge-short needs --min-length SECONDS, which says what is short")
    if is_typed("copy") and given["split"] is None:
        raise InvalidArgumentError("--copy needs --split FOLDER, where the copied pieces are written")


def with_chosen_threshold(detector: str, threshold: float | None) -> str:
    """The name of the detector with the threshold, if one is chosen."""
    from vidkin.shots import with_threshold

    return detector if threshold is None else with_threshold(detector, threshold)


def make_export_settings(
    template: str | None, image_format: str, image_size: int, images: int, copy: bool, quality: int
) -> ExportSettings:
    """How pieces and images are made, from the values of the options."""
    from vidkin.shots import ExportSettings

    return ExportSettings(
        template=template,
        image_format=cast("ImageFormat", image_format),
        image_size=image_size or None,
        images=images,
        copies=copy,
        quality=quality,
    )
