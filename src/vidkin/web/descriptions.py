"""Conventions of the API, and examples for its fields and parameters."""

from __future__ import annotations

from typing import Any

RULES: dict[str, str] = {
    "Token": "Every request needs the token that `vidkin serve` prints, as `Authorization: Bearer TOKEN`.",
    "Videos": "A video has a number, its `id`; `GET /api/videos?path=/videos/holiday.mp4` finds it by path. An "
    "uploaded file has the key `upload`. Times are seconds, and whole numbers are within 2^53.",
    "Jobs": "Long-running work is answered with 202 and a job, whose address is in `Location`. `GET` it until its "
    "`state` is no longer `running`, or read its events: it is `done` with a `result`, `failed` with an `error`, or "
    "`stopped`. Most kinds run one job at a time and refuse another with `job-running`. A finished job can be "
    "read until 50 later ones have finished, also after a restart; a job whose server ended first is `failed`.",
    "Errors": "A status of 400 or more has a `Problem` (RFC 9457) as its body: act on its `code`, and show its "
    "`detail`. Only a browser that opens an address outside of `/api/` (`Accept: text/html`) gets a page or a line of "
    "text instead.",
}
"""Conventions of the whole API: headings and paragraphs."""

EXAMPLES: dict[str, Any] = {
    "added": 12,
    "address": "/videos/1",
    "added_at": 1764412800.5,
    "bytes": 120_000_000,
    "cause": "no video in it",
    "code": "not-indexed",
    "codec": "h264",
    "confidence": 0.97,
    "content_hash": "blake2b:0a1b2c3d4e5f60718293a4b5",
    "damage": "",
    "detail": "video 99 is not in the index; reload the library",
    "detector": "cuts",
    "duration": 61.2,
    "end": 9.0,
    "error": "",
    "field": "limit",
    "folder": "/videos",
    "form": "csv",
    "frame_rate": 25.0,
    "height": 1080,
    "id": 1,
    "key": "a1b2c3d4e5f60718",
    "limit": 20,
    "name": "holiday.mp4",
    "new_name": "seen",
    "path": "/videos/holiday.mp4",
    "player": "mpv",
    "q": "holiday",
    "rate": 3.2,
    "run": "8d969eef6ecad3c2",
    "score": 0.93,
    "seconds": 1.5,
    "seconds_left": 12.0,
    "size": 12_345_678,
    "start": 4.0,
    "state": "done",
    "status": "ok",
    "text": "has a subtitle that no other file has",
    "thumbnail": "/videos/1/thumbnail?v=0a1b2c3d4e5f",
    "threshold": 0.5,
    "ticket": "17.1",
    "time": 2.5,
    "title": "Add videos",
    "under": "/videos",
    "upload": "q3VtYm9sZSBpZA",
    "video": 1,
    "videos": [1, 2],
    "width": 1920,
    "words": "shows all of it, smaller",
    "x": [0.1, 0.9],
    "y": [0.4, 0.2],
}
"""Examples by name; one that does not fit the type of the field is replaced by a generic one."""
