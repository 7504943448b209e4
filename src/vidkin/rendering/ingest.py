"""Results of adding files to an index, as text and counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from vidkin.rendering.text import number

if TYPE_CHECKING:
    from vidkin.index import IngestReport


def count_files(videos: int, photographs: int) -> str:
    """Describe the number of videos and photographs; photographs are omitted if there are none."""
    more = f" and {number(photographs, 'photograph')}" if photographs else ""
    return f"{number(videos, 'video')}{more}"


def summarize_report(report: IngestReport, *, list_skipped: bool) -> dict[str, Any]:
    """Replace the report's file lists by counts, except for problem files; skipped files are listed only on request."""
    facts = report.to_dict()
    damaged = [item for item in facts["added"] if item["cause"]]
    counted = ("added", "unchanged", "moved", "removed", *(() if list_skipped else ("skipped",)))
    return facts | {name: len(facts[name]) for name in counted} | {"damaged": damaged}


def describe_outdated(report: IngestReport) -> Iterator[str]:
    """Yield sentences about indexed files that are missing or excluded; nothing if pruning was refused."""
    if not report.prune_refused:
        prune = "; use --prune to remove {it} from the index."
        indexed = ("indexed file", "indexed files")
        yield from _count(len(report.missing), *indexed, "{are} no longer in these folders" + prune)
        yield from _count(len(report.excluded), *indexed, "{are} now excluded" + prune)


def describe_skipped(report: IngestReport) -> Iterator[str]:
    """Yield sentences about skipped files and folders, each with the option to include them."""
    from vidkin.index import BIN, LINK_TO_FOLDER, PHOTOGRAPH

    causes = [item.cause for item in report.skipped]
    photographs = "{were} skipped; use --images to add {it}."
    bins = "of deleted files, snapshots or previews {were} skipped; use --include-bins to add {it}."
    links = "{were} not followed; use --follow-links to follow {it}."
    yield from _count(causes.count(PHOTOGRAPH), "photograph", "photographs", photographs)
    yield from _count(causes.count(BIN), "folder", "folders", bins)
    yield from _count(causes.count(LINK_TO_FOLDER), "link to a folder", "links to folders", links)


def _count(count: int, singular: str, plural: str, sentence: str) -> Iterator[str]:
    """Yield a sentence about files, unless there are none; words in braces agree with the number of files."""
    if count:
        are, were, it = ("is", "was", "it") if count == 1 else ("are", "were", "them")
        yield f"{number(count, singular, plural)} {sentence.format(are=are, were=were, it=it)}"
