"""HTML page with images of the lowest-scoring copy for each edit."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from vidkin.media import read_frames
from vidkin_research.copies.edits import EDITS
from vidkin_research.copies.figures import GroupFigures
from vidkin_research.copies.material import GalleryVideo
from vidkin_research.copies.places import PlacedSegment, place_segments
from vidkin_research.copies.study import CopyResults

Box = tuple[float, float, float, float]


_SIDE = 200


_QUALITY = 72


_TRUE_COLOR, _FOUND_COLOR = "#22c55e", "#f97316"


_WHOLE = (0.0, 0.0, 1.0, 1.0)


_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; color: #1c1917; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; } th, td { padding: .25rem .7rem; text-align: right; }
td { border-top: 1px solid #e7e5e4; }
th:first-child, td:first-child { text-align: left; }
.edits { display: grid; grid-template-columns: repeat(auto-fill, minmax(27rem, 1fr)); gap: 1rem; }
figure { margin: 0; padding: .8rem; border: 1px solid #e7e5e4; border-radius: .5rem; }
figure.missed { border-color: #dc2626; background: #fef2f2; }
figure img { height: 9rem; max-width: 49%; object-fit: contain; vertical-align: middle; }
figcaption b { margin-right: .4rem; } .badge { float: right; font-weight: 600; }
.found .badge { color: #15803d; } .missed .badge { color: #b91c1c; } .note { color: #57534e; }
"""


@dataclass(frozen=True, slots=True)
class _Example:
    """A copy that illustrates an edit: its score, and its first segment with the detected one."""

    video: GalleryVideo
    score: float
    place: PlacedSegment


def as_image_page(results: CopyResults, *, title: str = "Copies of your videos", system: str | None = None) -> str:
    """Return a self-contained HTML page with an example of each edit.

    For each edit it shows a frame of the copy with the lowest score, so that misses are visible, next to the frame of
    its source. Green boxes are the ground truth, orange boxes are detections.

    Args:
        results: Results of a study with an extractor.
        title: Heading of the page.
        system: Name of a system with segments; None uses the first system.

    Raises:
        MediaError: A copy cannot be read.
    """
    figures = next(item for item in results.report.figures if system in (None, item.system))
    # Pick the copy with the lowest score for each edit.
    scores = results.scores[figures.system]
    rows = {query.name: row for row, query in enumerate(results.material.queries)}
    places: Iterator[PlacedSegment] = iter(place_segments(scores, results.material))
    examples: dict[str, _Example] = {}
    for column, video in enumerate(results.material.gallery):
        if video.source is None or not video.segments:
            continue
        own = [next(places) for _ in video.segments]
        score = float(scores.scores[rows[video.source.name], column])
        if video.edit not in examples or score < examples[video.edit].score:
            examples[video.edit] = _Example(video, score, own[0])
    groups = {group.name: group for group in figures.edits}
    report, everything = results.report, figures.everything
    made = f"{report.queries} clips of your videos were edited in {len(report.study.edits)} ways"
    searched = f"searched among {report.videos} videos by <b>{escape(figures.system)}</b>"
    reported = f"{everything.reported} of {everything.copies} copies"
    head = "<tr><th>copies</th><th>found</th><th>mAP</th><th>micro-AP</th><th>median score</th></tr>"
    lines = [
        f"<tr><td>{escape(group.name)}</td><td>{group.reported} of {group.copies}</td><td>{group.strict.map:.3f}</td>"
        f"<td>{group.strict.micro_ap:.3f}</td><td>{group.median:.2f}</td></tr>"
        for group in (everything, *figures.families)
    ]
    body = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{made} and {searched}. {reported} have a score of at least {everything.threshold:g}. "
        "Each example shows the copy with the lowest score.</p>",
        f"<table>{head}{''.join(lines)}</table>",
        *(
            f"<p class='note'>{escape(kind.which.capitalize())}: {kind.above} of {kind.pairs:,} unrelated pairs have a "
            f"score of at least {kind.threshold:g}; the highest is {kind.highest:.2f} "
            f"({escape(' and '.join(kind.highest_pair))}).</p>"
            for kind in figures.unrelated
        ),
    ]
    for family in figures.families:
        cards = [
            _card(groups[name], examples[name])
            for name, edit in EDITS.items()
            if edit.family == family.name and name in examples
        ]
        body += [f"<h2>{escape(family.name.capitalize())}</h2>", "<div class='edits'>", *cards, "</div>"]
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _card(group: GroupFigures, example: _Example) -> str:
    truth, segment, source = example.place.truth, example.place.segment, example.video.source
    assert source is not None
    moment = truth.edited_start + (truth.edited_end - truth.edited_start) / 2
    original = truth.source_start + (truth.source_end - truth.source_start) / 2
    drawn = example.place.edit_family in ("geometry", "inset")
    boxes: list[tuple[Box, Box, str]] = [(truth.source_box, truth.edited_box, _TRUE_COLOR)] if drawn else []
    if drawn and segment is not None:
        boxes.append((segment.query_box, segment.target_box, _FOUND_COLOR))
    images = [
        _picture(_frame(str(source.path), original), [(box[0], box[2]) for box in boxes], "source"),
        _picture(_frame(str(example.video.path), moment), [(box[1], box[2]) for box in boxes], "copy"),
    ]
    is_found = example.score >= group.threshold
    return (
        f"<figure class='{'found' if is_found else 'missed'}'>{' '.join(images)}<figcaption>"
        f"<span class='badge'>{group.reported} of {group.copies} found</span><b>{escape(group.name)}</b>"
        f"{escape(EDITS[group.name].description)}<br><span class='note'>shown: {escape(source.name)}, "
        f"{f'score {example.score:.2f}' if is_found else f'missed (score {example.score:.2f})'}; "
        f"mAP {group.strict.map:.2f}</span></figcaption></figure>"
    )


def _frame(path: str, moment: float) -> NDArray[np.uint8]:
    image: NDArray[np.uint8] = read_frames(path, start=moment, end=moment + 0.01, short_side=_SIDE).images[0]
    return image


def _picture(image: NDArray[np.uint8], boxes: Sequence[tuple[Box, str]], alt: str) -> str:
    picture = Image.fromarray(image)
    pen = ImageDraw.Draw(picture)
    for box, color in boxes:
        if box != _WHOLE:
            left, top, right, bottom = (share * (side - 1) for share, side in zip(box, 2 * picture.size, strict=True))
            pen.rectangle((left, top, right, bottom), outline=color, width=2)
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=_QUALITY)
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    return f"<img alt='{alt}' src='data:image/jpeg;base64,{data}'>"
