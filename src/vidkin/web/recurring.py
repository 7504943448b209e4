"""Recurring segments: timelines with colored groups, edits of ends, names and verdicts, and exports."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import HTTPException
from fastapi import Path as PathPart
from fastapi.responses import Response
from pydantic import Field

from vidkin._base.values import check_choice
from vidkin.errors import InvalidArgumentError
from vidkin.index import Occurrence, RecurringGroup, VideoRecord, is_gone
from vidkin.rendering import recurring as words
from vidkin.rendering.recurring_files import name_in_one_folder
from vidkin.rendering.text import printable
from vidkin.web.collection import Listing
from vidkin.web.groups import RecurringWish
from vidkin.web.jobs import Job
from vidkin.web.media import open_source
from vidkin.web.routes import Body, Page, PageNumber, attachment, extends, in_lane
from vidkin.web.site import CurrentSite, Site, WritableSite, base_name, cut_page, thumbnail_address

router = Page("recurring", "Recurring", "/recurring")

# Formats for download, without formats that need decoding.
_EXPORTS = {name: form.label for name, form in words.PLAYER_FORMATS.items()} | {
    name: form.label for name, form in words.RECURRING_FORMATS.items() if not form.reads_video
}
_COLORS = 8
_A_PAGE = 60
# A group's image is the frame at this share of its first occurrence.
_IMAGE_POSITION = 0.5


def key_of(group: RecurringGroup) -> str:
    """A key that identifies a group as long as its occurrences are the same."""
    facts = "\0".join(f"{one.path}\0{one.start:.3f}\0{one.end:.3f}" for one in group.occurrences)
    return hashlib.blake2b(facts.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


@extends(Occurrence)
class OccurrenceModel:
    """An occurrence.

    Attributes:
        id: Number of the video; null if it is no longer in the index.
        name: Name of the file in printable form.
        words: Difference from the other occurrences, in words.
    """

    id: int | None
    name: str
    words: str


@extends(RecurringGroup)
class RecurringGroupModel:
    """A group of recurring segments.

    Attributes:
        key: Identifies the group as long as it is unchanged.
        letter: Letter of the group on the page.
        color: Number of the color on the page.
        words: The group in one line.
        picture: Address of an image; null if the file is gone.
    """

    key: str
    letter: str
    color: int
    words: str
    picture: str | None
    occurrences: list[OccurrenceModel]


@dataclass(frozen=True, slots=True)
class RecurringList:
    """Recurring segments in the videos of the index.

    Attributes:
        searched: Whether videos were compared.
        wish: Settings of the search.
        videos: Number of videos that can be compared.
        groups: The groups.
        rejected: Groups that a person rejected.
    """

    searched: bool
    wish: RecurringWish
    videos: int
    groups: list[RecurringGroupModel]
    rejected: list[RecurringGroupModel]


@dataclass(frozen=True, slots=True)
class RecurringResult:
    """Result of the search.

    Attributes:
        groups: Number of groups.
    """

    groups: int


# An occurrence for display: its position in the group, its values, and the values of the group.
_Part = tuple[int, Mapping[str, Any], Mapping[str, Any]]


class WantedOccurrence(Body):
    """An occurrence as edited by a person.

    Attributes:
        start: Begin, seconds.
        end: End, seconds.
        belongs: False if it does not belong to the group.
    """

    start: float = Field(ge=0, le=1e6)
    end: float = Field(gt=0, le=1e6)
    belongs: bool = True


class WantedGroup(Body):
    """A person's verdict on a group.

    Attributes:
        verdict: `forget` undoes a verdict.
        name: Name; empty for the default name of its kind.
        occurrences: Its occurrences in order; empty to keep them unchanged.
    """

    verdict: Literal["recurs", "does not recur", "forget"]
    name: str = Field("", max_length=80, examples=["Opening"])
    occurrences: list[WantedOccurrence] = Field(default_factory=list, max_length=100_000)


_MEDIA_TYPES = sorted({form.media_type for form in words.RECURRING_FORMATS.values() if not form.reads_video})


@router.page("/recurring", "recurring.html")
def show_recurring(site: CurrentSite, page: PageNumber = 1) -> dict[str, Any]:
    """Page of recurring segments, with timelines of the files."""
    shown, recurring = site.recurring, list_recurring(site)
    parts = _parts_of_files(site, recurring["groups"])
    shown_parts, pager = cut_page(parts, page, _A_PAGE)
    return {
        "recurring": recurring,
        "files": [_file_values(site, record, own) for record, own in shown_parts],
        "all_files": len(parts),
        "exports": [(f"/api/recurring/export/{name}", label) for name, label in _EXPORTS.items()],
        **pager,
        "is_behind": site.index.has_segments
        and not shown.is_current
        and (shown.found is not None or shown.was_searched),
    }


@router.get("/api/recurring", response_model=RecurringList)
def list_recurring(site: CurrentSite) -> dict[str, Any]:
    """List the recurring segments found last by this server, with decisions applied."""
    found = site.recurring.found
    listing = site.index.listing()
    groups, rejected = (found.groups, found.rejected) if found else ((), ())
    return {
        "searched": found is not None,
        "wish": (found.wish if found else RecurringWish()).model_dump(),
        "videos": sum(record.status == "ok" for record in listing.records),
        "groups": [_group_values(position, group, listing) for position, group in enumerate(groups)],
        "rejected": [_group_values(position, group, listing) for position, group in enumerate(rejected)],
    }


@router.job("/api/recurring", "recurring", RecurringResult)
def find_recurring(site: CurrentSite, wish: RecurringWish) -> Job:
    """Find recurring segments, as a job. Comparisons are stored for the next search, even if the job is stopped."""
    site.index.check_segments()

    def work(job: Job) -> RecurringResult:
        found = site.recurring.search(wish, lambda done, total: job.report(done, total, "comparing"))
        return RecurringResult(len(found.groups))

    return site.jobs.start("recurring", "Find recurring segments", work)


@router.put("/api/recurring/groups/{key}", response_model=RecurringList)
@in_lane("searches")
def decide_group(
    site: WritableSite, key: Annotated[str, PathPart(max_length=64)], wanted: WantedGroup
) -> dict[str, Any]:
    """Store a person's edits of a group (ends, name) or its rejection; the groups are updated at once.

    Args:
        site: The site.
        key: Key of the group, as listed.
        wanted: The edits.
    """
    # Not a job: less than 0.1 s in an index of 67 videos.
    group = _group(site, key)
    if wanted.verdict == "recurs":
        group, without = _apply_edits(group, wanted)
        with site.index.writer() as index:
            index.confirm_recurring(group, without=without)
    else:
        with site.index.writer() as index:
            (index.reject_recurring if wanted.verdict == "does not recur" else index.forget_recurring)(group)
    found = site.recurring.found
    site.recurring.search(found.wish if found else RecurringWish())
    return list_recurring(site)


@router.file("/api/recurring/export/{form}", "application/zip", *_MEDIA_TYPES)
def export_recurring(
    site: CurrentSite, form: Annotated[str, PathPart(json_schema_extra={"enum": [*_EXPORTS]})]
) -> Response:
    """Download recurring segments as written by `vidkin recurring`: one table, or a ZIP archive with files for players.

    Args:
        site: The site.
        form: Format of the file.
    """
    check_choice("form", form, tuple(_EXPORTS))
    found = site.recurring.found
    groups: Sequence[RecurringGroup] = found.groups if found else ()
    if form in words.PLAYER_FORMATS:
        return attachment(_archive(site, groups, form), f"recurring.{form}.zip", "application/zip")
    row, text = words.RECURRING_FORMATS[form], io.StringIO()
    row.write(words.GroupsToWrite(groups, site.index.location), text)
    return attachment(text.getvalue(), f"recurring{row.suffix}", row.media_type)


def _group(site: Site, key: str) -> RecurringGroup:
    found = site.recurring.found
    for group in (*found.groups, *found.rejected) if found else ():
        if key_of(group) == key:
            return group
    raise HTTPException(409, "this group has changed; reload the page")


def _apply_edits(group: RecurringGroup, wanted: WantedGroup) -> tuple[RecurringGroup, list[Occurrence]]:
    """Apply a person's edits; return the group and the occurrences that do not belong to it."""
    if wanted.occurrences and len(wanted.occurrences) != len(group.occurrences):
        raise InvalidArgumentError(
            f"occurrences must be {len(group.occurrences)}, as many as the group has, got {len(wanted.occurrences)}"
        )
    pairs = list(zip(group.occurrences, wanted.occurrences, strict=True)) if wanted.occurrences else []
    kept = tuple(replace(one, start=other.start, end=other.end) for one, other in pairs if other.belongs)
    if pairs and len(kept) < 2:
        raise InvalidArgumentError('at least two parts must stay in a group; choose "Not recurring" for all of it')
    name = " ".join(wanted.name.split())
    return replace(group, name=name, occurrences=kept or group.occurrences), [
        one for one, other in pairs if not other.belongs
    ]


def _archive(site: Site, groups: Sequence[RecurringGroup], form: str) -> bytes:
    """Archive the chapters or skip lists of every file with recurring parts."""
    paths = {one.path for group in groups for one in group.occurrences}
    records = [record for record in site.index.listing().records if record.path in paths]
    names = name_in_one_folder(record.path for record in records)
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for record in records:
            parts = words.parts_of_file(groups, record.path, record.duration)
            if any(part.recurs for part in parts):
                name = printable(names[record.path] + ("" if form == "edl" else Path(record.path).suffix))
                for ending, write in words.PLAYER_FORMATS[form].files.items():
                    archive.writestr(name + ending, write(parts))
    return held.getvalue()


def _group_values(position: int, group: RecurringGroup, listing: Listing) -> dict[str, Any]:
    first = group.occurrences[0]
    record = listing.find(first.path)
    moment = first.start + _IMAGE_POSITION * first.duration
    return {
        **group.to_dict(),
        "key": key_of(group),
        "letter": words.group_name(position),
        "color": position % _COLORS,
        "words": words.describe_group(position, group).partition(": ")[2],
        "picture": record and thumbnail_address(record, moment),
        "occurrences": [_occurrence_values(one, listing) for one in group.occurrences],
    }


def _occurrence_values(one: Occurrence, listing: Listing) -> dict[str, Any]:
    record = listing.find(one.path)
    return {
        **one.to_dict(),
        "id": record and record.id,
        "name": base_name(one.path),
        "words": words.describe_difference(one),
    }


def _parts_of_files(site: Site, groups: Sequence[Mapping[str, Any]]) -> list[tuple[VideoRecord, list[_Part]]]:
    """Files with recurring parts, by path, each with its parts."""
    parts: dict[str, list[_Part]] = {}
    for group in groups:
        if group["kind"] == "copy":
            continue
        for place, one in enumerate(group["occurrences"]):
            parts.setdefault(one["path"], []).append((place, one, group))
    records = site.index.listing().by_path
    return [(records[path], own) for path, own in sorted(parts.items()) if path in records]


def _file_values(site: Site, record: VideoRecord, parts: Sequence[_Part]) -> dict[str, Any]:
    """A file with its parts in order of time, as drawn on the page."""
    known = ("key", "letter", "color", "kind", "name")
    values = [
        {**one, "file": one["name"], **{name: group[name] for name in known}, "place": place}
        for place, one, group in parts
    ]
    gone = is_gone(record.path)
    return {
        "id": record.id,
        "name": base_name(record.path),
        "duration": record.duration,
        "gone": gone,
        "source": None if gone else open_source(site, video=record.id).item,
        "parts": sorted(values, key=lambda part: part["start"]),
    }
