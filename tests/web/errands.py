"""Six errands of a plugin of a media server, with nothing but a client that was generated from the API's description.

Run with a Python that has the client: ``errands.py ADDRESS TOKEN FOLDER CLIP``. What was found is printed as JSON.
"""

from __future__ import annotations

import io
import json
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

from vidkin_client import AuthenticatedClient
from vidkin_client.api.duplicates import find_duplicates, list_duplicates
from vidkin_client.api.jobs import get_job
from vidkin_client.api.library import index_folders, list_videos
from vidkin_client.api.media import get_thumbnail, upload_file
from vidkin_client.api.recurring import export_recurring, find_recurring
from vidkin_client.api.search import search_videos
from vidkin_client.api.shots import detect_shots, get_shots
from vidkin_client.models import Folders, ProblemCode, RecurringWish, Search, Wish
from vidkin_client.models.export_recurring_form import ExportRecurringForm
from vidkin_client.types import File


def finish(client: Any, job: Any) -> Any:
    """The last state of a job."""
    while job.state == "running":
        time.sleep(0.2)
        job = get_job.sync(job.id, client=client)
    assert job.state == "done", job.error
    return job


def run(address: str, token: str, folder: Path, clip: Path) -> dict[str, Any]:
    """Do all six."""
    client = AuthenticatedClient(address, token, timeout=120)
    done: dict[str, Any] = {}

    added = finish(client, index_folders.sync(client=client, body=Folders(paths=[str(folder)])))
    video = list_videos.sync(client=client, path=str(folder / "coffee.mp4")).videos[0]
    done["index"] = [added.kind, added.result.added, video.name]

    with clip.open("rb") as content:
        upload = upload_file.sync(client=client, body=File(content), name=clip.name)
    found = search_videos.sync(client=client, body=Search(upload=upload.key["upload"], limit=3))
    done["search"] = [found.matches[0].video.name, round(found.matches[0].segments[0].target_start)]

    finish(client, find_duplicates.sync(client=client, body=Wish()))
    groups = list_duplicates.sync(client=client).groups
    done["duplicates"] = [sorted(member.name for member in group.members) for group in groups]

    recurring = finish(client, find_recurring.sync(client=client, body=RecurringWish()))
    lists = export_recurring.sync(ExportRecurringForm.EDL, client=client)
    with zipfile.ZipFile(io.BytesIO(lists.payload.read())) as archive:
        done["skip list"] = [recurring.result.groups, sorted(archive.namelist())]

    finish(client, detect_shots.sync(video.id, client=client))
    done["shots"] = len(get_shots.sync(video.id, client=client).shots)

    picture = get_thumbnail.sync(video.id, client=client, time=2.0)
    done["thumbnail"] = picture.payload.read(4).decode("ascii")

    problem = list_videos.sync(client=AuthenticatedClient(address, "wrong"))
    assert problem.code == ProblemCode.UNAUTHORIZED
    return done


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))))
