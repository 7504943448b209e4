"""Comparison of classical features, networks and trained models on the same image sets.

To add a row, write a class with ``describe`` and ``distances`` (and ``classify`` if it is a classifier), and add
``ImageRow(name, fit)`` to one of the tuples in `ROWS`, where ``fit(task, seed)`` returns an instance.
"""

from vidkin_research.images.classical_rows import CLASSICAL_ROWS
from vidkin_research.images.contract import BACKBONE, ImagePart, ImageRow, ImageTask
from vidkin_research.images.figures import RECALLS, MeasuredRow, RowFigures, measure_row
from vidkin_research.images.network_rows import NETWORK_ROWS
from vidkin_research.images.page import as_page
from vidkin_research.images.ranking_rows import RANKING_ROWS
from vidkin_research.images.sets import IMAGE_SETS, ImageCollection, open_task
from vidkin_research.images.study import ImageReport, Rankings, choose_rates, read_rankings, run_image_study
from vidkin_research.images.sweeps import SweepPart, SweepReport, draw_sweeps, run_sweeps, sweeps_page, time_steps
from vidkin_research.images.two_head_rows import TWO_HEAD_ROWS

__all__ = [
    "BACKBONE",
    "CLASSICAL_ROWS",
    "IMAGE_SETS",
    "NETWORK_ROWS",
    "RANKING_ROWS",
    "RECALLS",
    "ROWS",
    "TWO_HEAD_ROWS",
    "ImageCollection",
    "ImagePart",
    "ImageReport",
    "ImageRow",
    "ImageTask",
    "MeasuredRow",
    "Rankings",
    "RowFigures",
    "SweepPart",
    "SweepReport",
    "as_page",
    "choose_rates",
    "draw_sweeps",
    "measure_row",
    "open_task",
    "read_rankings",
    "run_image_study",
    "run_sweeps",
    "sweeps_page",
    "time_steps",
]

ROWS: tuple[ImageRow, ...] = (*CLASSICAL_ROWS, *NETWORK_ROWS, *RANKING_ROWS, *TWO_HEAD_ROWS)
"""All rows, in table order."""
