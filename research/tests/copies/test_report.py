"""The Markdown report of copy retrieval, with values that can be computed by hand."""

from __future__ import annotations

from vidkin_research.copies.figures import AveragePrecisions, CopyFigures, GroupFigures, UnrelatedFigures
from vidkin_research.copies.places import BoxOverlaps, TimeErrors
from vidkin_research.copies.report import as_page
from vidkin_research.copies.scores import SearchCosts
from vidkin_research.copies.study import CopyReport, CopyStudy


def group(name: str, family: str | None = None, **more: object) -> GroupFigures:
    return GroupFigures(
        name=name,
        family=family,
        copies=8,
        reported=7,
        threshold=0.2,
        median=0.91234,
        lowest=0.1,
        strict=AveragePrecisions(0.875, 0.5),
        neutral=AveragePrecisions(1.0, 0.75),
        **more,  # type: ignore[arg-type]
    )


def report(*, costs: SearchCosts | None = None, unrelated: tuple[UnrelatedFigures, ...] = ()) -> CopyReport:
    figures = CopyFigures(
        system="vidkin",
        everything=group("everything"),
        families=(group("geometry", "geometry", recall=0.5, boxes=BoxOverlaps(3, 0.9, 0.8, 0.72)),),
        edits=(group("crop", "geometry", times=TimeErrors(9, 1, 0.25, 0.5, 1.0, 2.0)),),
        unrelated=unrelated,
        costs=costs,
    )
    study = CopyStudy(edits=("crop", "mirror"))
    return CopyReport(
        machine="a machine",
        study=study,
        queries=4,
        videos=30,
        minutes=1.0,
        figures=(figures,),
        notes=("Left out: x.",),
    )


def row(page: str, name: str) -> list[str]:
    (line,) = (line for line in page.splitlines() if line.startswith(f"| {name} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_each_group_is_a_row() -> None:
    page = as_page(report())
    assert row(page, "everything") == [
        *("everything", "", "7 of 8", "0.912", "0.875", "0.500", "1.000", "0.750"),
        *[""] * 5,
    ]
    geometry, crop = row(page, "geometry"), row(page, "crop")
    assert (geometry[8], geometry[12]) == ("0.500", "0.90, 0.80")
    assert crop[9:12] == ["0.25, 1.00", "0.50, 2.00", "1 of 9"]


def test_every_row_has_the_columns_of_the_header() -> None:
    tables = [line for line in as_page(report()).splitlines() if line.startswith("|")]
    assert {line.count("|") for line in tables} == {14}
    assert len(tables) == 2 * 2 + 3


def test_page_names_the_measurement_and_the_machine() -> None:
    lines = as_page(report(), title="Copies", notes=["And a note."]).splitlines()
    assert lines[0] == "# Copies"
    assert "4 queries of 20 s against 30 videos, 2 edits. a machine" in lines
    assert lines[-2:] == ["Left out: x.", "And a note."]


def test_page_shows_costs_and_unrelated_pairs_if_measured() -> None:
    assert "Indexed in" not in as_page(report())
    unrelated = UnrelatedFigures("same scene", 1200, 0.3871, ("a-0", "b.mp4"), 3, 0.2)
    page = as_page(report(costs=SearchCosts(12.34, 9_100_000, 0.456, 0.99996), unrelated=(unrelated,)))
    assert "Indexed in 12.3 s, 9.1 MB per hour of video; a query takes 0.46 s." in page
    assert "Lowest score of a video with itself: 1.0000." in page
    assert (
        "Unrelated pairs, same scene: the highest of 1,200 scores is 0.387 (a-0, b.mp4); 3 are at least 0.2."
    ) in page
