"""The outcome of adding files to an index, as text and counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from vidkin.rendering.text import number

if TYPE_CHECKING:
    from vidkin.index import IngestReport


def count_files(videos: int, photographs: int) -> str:
    """Numbers of videos and photographs as text; photographs are omitted if there are none."""
    more = f" and {number(photographs, 'photograph')}" if photographs else ""
    return f"{number(videos, 'video')}{more}"


def summarize_report(report: IngestReport, *, list_skipped: bool) -> dict[str, Any]:
    """The report in numbers; files are listed where something is wrong with them, skipped ones only on request."""
    facts = report.to_dict()
    damaged = [item for item in facts["added"] if item["cause"]]
    counted = ("added", "unchanged", "moved", "removed", *(() if list_skipped else ("skipped",)))
    return facts | {name: len(facts[name]) for name in counted} | {"damaged": damaged}


def describe_outdated(report: IngestReport) -> Iterator[str]:
    """Sentences about files of the index that are gone or excluded; none if removing them was refused."""
    if not report.prune_refused:
        prune = "; --prune removes {it} from the index."
        yield from _count(len(report.missing), "file", "files", "of the index {are} gone from these folders" + prune)
        yield from _count(len(report.excluded), "file", "files", "of the index {are} excluded now" + prune)


def describe_skipped(report: IngestReport) -> Iterator[str]:
    """Sentences about files and folders that were skipped, each with the option that includes them."""
    from vidkin.index import BIN, LINK_TO_FOLDER, PHOTOGRAPH

    causes = [item.cause for item in report.skipped]
    photographs = "{were} left out; --images adds {it}."
    bins = "of deleted files, snapshots or previews {were} left out; --include-bins reads {it}."
    links = "{were} not followed; --follow-links follows {it}."
    yield from _count(causes.count(PHOTOGRAPH), "photograph", "photographs", photographs)
    yield from _count(causes.count(BIN), "folder", "folders", bins)
    yield from _count(causes.count(LINK_TO_FOLDER), "link to a folder", "links to folders", links)


def _count(count: int, singular: str, plural: str, sentence: str) -> Iterator[str]:
    """A sentence about files, in which words in braces depend on their number; empty if there are no files."""
    if count:
        are, were, it = ("is", "was", "it") if count == 1 else ("are", "were", "them")
        yield f"{number(count, singular, plural)} {sentence.format(are=are, were=were, it=it)}"
