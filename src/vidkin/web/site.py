"""State and helpers shared by all pages: the index, caches, lanes, jobs and templates."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from vidkin._base.files import IMAGE_EXTENSIONS
from vidkin._base.values import as_json
from vidkin._version import __version__
from vidkin.index import VideoRecord
from vidkin.index.storage.lists import SavedLists
from vidkin.index.storage.place import Place
from vidkin.rendering.text import clock, file_size, number, printable
from vidkin.review import read_detector
from vidkin.web.cache import DiskCache
from vidkin.web.collection import SharedIndex
from vidkin.web.groups import ShownGroups, ShownRecurring
from vidkin.web.guard import Settings
from vidkin.web.jobs import JobFiles, Jobs
from vidkin.web.lanes import Lane
from vidkin.web.problems import RefusedError
from vidkin.web.uploads import Uploads

_Item = TypeVar("_Item")
CACHE_FOLDER, JOBS_FOLDER = "web-cache", "web-jobs"
# Simultaneous searches and comparisons by jobs, in addition to the ones by pages.
_MAX_SEARCH_JOBS = 2
# Number of pages with an always visible link; further links are under "More".
_MAIN_PAGES = 5
# Between a number and its unit, to prevent a line break.
_FIXED_SPACE = "\N{NO-BREAK SPACE}"


class Site:
    """Shared parts of a server, created once and used by all requests.

    Attributes:
        settings: Limits.
        index: The index, shared by all requests.
        cache: Thumbnails and previews.
        jobs: Work that outlives a request.
        turns: Semaphore for jobs that search or compare.
        uploads: Uploaded files.
        lists: Lane for quick work, such as reading records.
        pictures: Lane for thumbnails.
        searches: Lane for searches and comparisons.
        conversions: Lane for previews.
        streams: Lane for reading pieces of files.
        groups: Groups of duplicates.
        recurring: Groups of recurring segments.

    Args:
        place: Where the index is.
        settings: Limits.
        links: Title and address of each link of the navigation, in order.
    """

    def __init__(self, place: Place, settings: Settings, links: Mapping[str, str]) -> None:
        self.settings = settings
        read_only = settings.read_only
        self.index = SharedIndex(place, cluster=settings.cluster, read_only=read_only)
        self.cache = DiskCache(self.index.folder / CACHE_FOLDER, most=settings.cache_bytes, read_only=read_only)
        self.uploads = Uploads(settings)
        is_kept = place.folder is not None and not read_only
        files = JobFiles(self.index.folder / JOBS_FOLDER) if is_kept else None
        self.jobs = Jobs(files, self.uploads.shown)
        self.turns = threading.BoundedSemaphore(_MAX_SEARCH_JOBS)
        self.groups = ShownGroups(self.index)
        self.recurring = ShownRecurring(self.index)
        self._saved: tuple[object, SavedLists] | None = None
        lane = partial(Lane, seconds=settings.request_seconds)
        self.lists = lane("lists", workers=4, waiting=64)
        self.pictures = lane("pictures", workers=4, waiting=256)
        self.searches = lane("searches", workers=2, waiting=64, of_client=16)
        self.conversions = lane("previews", workers=2, waiting=8)
        self.streams = lane("reading files", workers=8, waiting=256)
        self._templates = Environment(
            loader=PackageLoader("vidkin.web"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters.update(
            json=_json,
            clock=clock,
            local_time=lambda created: f"{datetime.fromisoformat(created).astimezone():%Y-%m-%d %H:%M}",
            file_size=lambda size: file_size(size).replace(" ", _FIXED_SPACE),
            printable=printable,
            number=number,
            base_name=base_name,
            middle=shorten_name,
            breakable=_breakable,
            folder=lambda path: base_name(os.path.dirname(path)),
            plain=lambda value: "" if value is None else f"{value:g}",
        )
        self._templates.globals.update(
            version=__version__,
            navigation=list(links.items())[:_MAIN_PAGES],
            more_pages=list(links.items())[_MAIN_PAGES:],
            page_keys=_letters(links),
            index_name=base_name(self.index.location),
            read_only=settings.read_only,
            index=self.index,
            is_empty=self.is_empty,
            thumbnail_address=thumbnail_address,
        )

    def page(self, template: str, path: str, values: Mapping[str, Any]) -> HTMLResponse:
        """Render a page from ``templates/``; its ``section`` is the address that the navigation marks."""
        return HTMLResponse(self._templates.get_template(template).render(section=_section_of(path), **values))

    def is_empty(self) -> bool:
        """Whether the index has no videos; reads the index."""
        return not self.index.listing().records

    def lists_of_videos(self) -> SavedLists:
        """The saved lists, not to be modified; reread after another program wrote them."""
        self.index.check_present()
        version = self.index.place.version(SavedLists.FILE)
        if self._saved is None or self._saved[0] != version:
            self._saved = (version, SavedLists.open(self.index.place))
        return self._saved[1]

    def detector(self) -> str:
        """Name of the shot detector in use."""
        return read_detector(self.index.folder)

    def has_shots(self, record: VideoRecord, detector: str) -> bool:
        """Whether shots from this detector are cached for the current file of a video."""
        return self.cache.has(shots_key(record, detector), ".json")

    def calls(self) -> int:
        """Number of completed calls of all lanes plus changes in jobs."""
        lanes = self.lists, self.pictures, self.searches, self.conversions, self.streams
        return sum(lane.calls for lane in lanes) + sum(job.state().version for job in self.jobs.all())

    def close(self) -> None:
        """Stop jobs and release files."""
        self.jobs.stop()
        self.uploads.close()
        self.cache.close()
        self.index.close()


def shots_key(record: VideoRecord, detector: str) -> str:
    """The cache key of the shots of a video."""
    return f"shot detection\0{detector}\0{record.path}\0{record.size}\0{record.mtime_ns}"


def _section_of(path: str) -> str:
    """The navigation address that a page belongs to."""
    if path.startswith("/videos/"):
        return "/shots" if path.endswith("/shots") else "/"
    return "/search" if path == "/match" else path


def cut_page(items: Sequence[_Item], page: int, size: int) -> tuple[Sequence[_Item], dict[str, int]]:
    """The items of a page of a list, and the values that its pager shows; the last page if there are fewer."""
    pages = max(-(-len(items) // size), 1)
    page = min(page, pages)
    return items[(page - 1) * size : page * size], {"page": page, "pages": pages}


def base_name(path: str) -> str:
    """The last part of a path in printable form."""
    return printable(os.path.basename(path.rstrip(os.sep)) or path)


def shorten_name(name: str, most: int = 36) -> str:
    """Shorten a long name in the middle, because file names often differ only at the end."""
    if len(name) <= most:
        return name
    end = most // 2
    return f"{name[: most - end - 1]}\N{HORIZONTAL ELLIPSIS}{name[-end:]}"


def _letters(titles: Iterable[str]) -> dict[str, str]:
    """Assign each title its first letter that no earlier title uses."""
    chosen: dict[str, str] = {}
    for title in titles:
        chosen[title] = next(letter for letter in title.upper() if letter.isalpha() and letter not in chosen.values())
    return chosen


def _breakable(name: str) -> Markup:
    """Allow line breaks after underscores, so that long names do not break inside words."""
    return Markup("_<wbr>").join(escape(part) for part in name.split("_"))


def is_still(record: VideoRecord) -> bool:
    """Whether a file is a still image; its name does not tell, because motion photos and animated images are videos."""
    is_named_so = os.path.splitext(record.path)[1].lower() in IMAGE_EXTENSIONS
    return record.is_photograph if record.status == "ok" else is_named_so


def thumbnail_address(record: VideoRecord, time: float | None = None) -> str:
    """The address of a thumbnail at a time (default: near a third of the video), which changes with the file."""
    version = record.content_hash[-12:] or f"{record.mtime_ns:x}"
    moment = "" if time is None else f"&time={time:.2f}"
    return f"/videos/{record.id}/thumbnail?v={version}{moment}"


def _json(value: object) -> str:
    return json.dumps(as_json(value))


def _site_of(request: Request) -> Site:
    site: Site = request.app.state.site
    return site


CurrentSite = Annotated[Site, Depends(_site_of)]
"""Function parameter that receives the :class:`Site`."""


def check_writable(site: CurrentSite) -> Site:
    """The site; raises :class:`RefusedError` if the server is read-only."""
    if site.settings.read_only:
        raise RefusedError(403, "read-only", "this server was started with --read-only and changes nothing")
    return site


WritableSite = Annotated[Site, Depends(check_writable)]
"""Function parameter that receives the :class:`Site`; if the server is read-only, the request is refused."""
