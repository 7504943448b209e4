"""Output shared by the command line and the web app: JSON, text, figures, and installation and index checks."""

from typing import TYPE_CHECKING

from vidkin._base.registry import lazy_names

if TYPE_CHECKING:
    from vidkin.rendering.classifier import draw_classifier
    from vidkin.rendering.curve import draw_curve
    from vidkin.rendering.duplicates import describe_member, duplicate_cells
    from vidkin.rendering.machine import inspect_machine
    from vidkin.rendering.matches import frame_pairs, pool_map
    from vidkin.rendering.recurring import describe_difference, describe_group
    from vidkin.rendering.recurring_files import skip_lists
    from vidkin.rendering.reports import available_reports, write_duplicate_report, write_recurring_report
    from vidkin.rendering.text import (
        FileFormat,
        clock,
        describe_parts,
        file_size,
        find_format,
        number,
        printable,
        write_format,
    )
    from vidkin.rendering.training import draw_first_batch, draw_quadlets
else:
    __getattr__ = lazy_names(__name__)

__all__ = [
    "FileFormat",
    "available_reports",
    "clock",
    "describe_difference",
    "describe_group",
    "describe_member",
    "describe_parts",
    "draw_classifier",
    "draw_curve",
    "draw_first_batch",
    "draw_quadlets",
    "duplicate_cells",
    "file_size",
    "find_format",
    "frame_pairs",
    "inspect_machine",
    "number",
    "pool_map",
    "printable",
    "skip_lists",
    "write_duplicate_report",
    "write_format",
    "write_recurring_report",
]
