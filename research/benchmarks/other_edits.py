"""Search recall for edits made with OpenCV, independently of the project's own edits.

    python research/benchmarks/other_edits.py --videos FOLDER... --fillers FOLDER --photographs FOLDER --work FOLDER
        [--leave-out NAME...] [--extractor NAME...] [--output research/results]

Eight seconds of every video are edited in 30 ways common among people and platforms and encoded as H.264. Fillers are
other videos shown next to them; photographs serve as backgrounds. Each original clip is searched for among all edited
clips. The edits share no code with `EDITS`. The working folder is not deleted afterward.
"""

from __future__ import annotations

import argparse
import json
import statistics
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
from numpy.typing import NDArray

from vidkin._base.files import VIDEO_EXTENSIONS
from vidkin.index import Index
from vidkin.rendering.machine import describe_machine

SECONDS, RATE, LONG_SIDE = 8.0, 20, 480
# Score from which a match counts as found.
BELIEVED = 0.2
Picture = NDArray[np.uint8]
Film = list[Picture]
WHITE = (255, 255, 255)


def load(path: Path, start: float) -> Film:
    """Decode eight seconds of a video at up to 20 fps, resized to a long side of 480."""
    film: Film = []
    due = start
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        first = None
        for frame in container.decode(stream):
            first = frame.time or 0.0 if first is None else first
            time = (frame.time or 0.0) - first
            if time >= start + SECONDS:
                break
            if time + 1e-6 < due:
                continue
            due += 1 / RATE
            scale = LONG_SIDE / max(frame.width, frame.height)
            size = int(frame.width * scale) // 2 * 2, int(frame.height * scale) // 2 * 2
            film.append(cv2.resize(frame.to_ndarray(format="rgb24"), size, interpolation=cv2.INTER_AREA))
    return film


def save(film: Film, path: Path, crf: int = 26) -> None:
    """Write an H.264 file with even width and height."""
    height, width = (side - side % 2 for side in film[0].shape[:2])
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("libx264", rate=RATE)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.options = {"crf": str(crf), "preset": "veryfast"}
        for picture in film:
            whole = np.ascontiguousarray(picture[:height, :width])
            container.mux(stream.encode(av.VideoFrame.from_ndarray(whole, format="rgb24")))
        container.mux(stream.encode())


def loop(film: Film, count: int) -> Film:
    """Play forward and backward until the number of frames is reached."""
    both = film + film[::-1]
    return [both[place % len(both)] for place in range(count)]


def cover(picture: Picture, width: int, height: int) -> Picture:
    """Scale and center-crop to fill the size."""
    scale = max(width / picture.shape[1], height / picture.shape[0])
    size = int(np.ceil(picture.shape[1] * scale)), int(np.ceil(picture.shape[0] * scale))
    large = cv2.resize(picture, size)
    top, left = (size[1] - height) // 2, (size[0] - width) // 2
    return large[top : top + height, left : left + width].copy()


def put(ground: Picture, picture: Picture, left: int, top: int) -> Picture:
    """Paste an image into another."""
    result = ground.copy()
    result[top : top + picture.shape[0], left : left + picture.shape[1]] = picture
    return result


def write(picture: Picture, text: str, bottom: int, size: float) -> Picture:
    """Draw white text with a black outline."""
    for color, width in (((0, 0, 0), 4), (WHITE, 1)):
        cv2.putText(picture, text, (8, bottom), cv2.FONT_HERSHEY_DUPLEX, size, color, width)
    return picture


def project(ground: Picture, picture: Picture, corners: list[list[int]]) -> Picture:
    """Project an image in perspective onto another."""
    height, width = picture.shape[:2]
    square = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    turn = cv2.getPerspectiveTransform(square, np.array(corners, np.float32))
    size = ground.shape[1], ground.shape[0]
    seen = cv2.warpPerspective(picture, turn, size)
    share = cv2.warpPerspective(np.full((height, width), 255, np.uint8), turn, size)[..., None] / 255
    return (seen * share + ground * (1 - share)).astype(np.uint8)


def layouts(film: Film, other: Film, photograph: Picture) -> Iterator[tuple[str, Film]]:
    """Frame layouts: the film next to, inside or around other content."""
    height, width = film[0].shape[:2]

    def blurred(picture: Picture) -> Picture:
        ground = cv2.GaussianBlur(cover(picture, 270, 480), (0, 0), 12)
        scale = min(270 / width, 480 / height)
        small = cv2.resize(picture, (int(width * scale), int(height * scale)))
        placed = put(ground, small, (270 - small.shape[1]) // 2, (480 - small.shape[0]) // 2)
        return write(placed, "WAIT FOR IT", 70, 0.6)

    mask = np.zeros((120, 160), np.uint8)
    cv2.rectangle(mask, (16, 0), (143, 119), 255, -1)
    cv2.rectangle(mask, (0, 16), (159, 103), 255, -1)
    for corner in ((16, 16), (143, 16), (16, 103), (143, 103)):
        cv2.circle(mask, corner, 16, 255, -1)
    share = mask[..., None] / 255

    def rounded(picture: Picture, ground: Picture) -> Picture:
        result = cover(ground, 480, 270)
        place = result[134:254, 300:460]
        place[:] = cover(picture, 160, 120) * share + place * (1 - share)
        return result

    def labeled(picture: Picture) -> Picture:
        framed = cv2.copyMakeBorder(picture, 70, 50, 0, 0, cv2.BORDER_CONSTANT, value=WHITE)
        write(framed, "WHEN YOU SEE IT", 40, 0.9)
        cv2.circle(framed, (width * 3 // 4, 70 + height // 2), height // 5, (255, 210, 0), -1)
        return write(framed, "subscribe", height + 100, 0.8)

    def bordered(picture: Picture, ground: Picture) -> Picture:
        small = cv2.copyMakeBorder(cover(picture, 240, 136), 2, 2, 2, 2, cv2.BORDER_CONSTANT, value=WHITE)
        return put(cover(ground, 480, 270), small, 8, 8)

    def telephone(picture: Picture) -> Picture:
        framed = cv2.copyMakeBorder(picture, 12, 12, 20, 20, cv2.BORDER_CONSTANT, value=(10, 10, 10))
        return project(photograph, framed, [[60, 50], [400, 20], [430, 230], [80, 250]])

    pairs = list(zip(film, other, strict=True))
    bar = np.zeros((60, 480, 3), np.uint8)
    green = np.full((360, 480, 3), (20, 160, 60), np.uint8)
    yield "blurred_9_16", [blurred(picture) for picture in film]
    yield "reaction", [np.vstack([cover(b, 360, 270), cover(a, 360, 270)]) for a, b in pairs]
    yield (
        "side_by_side",
        [np.vstack([bar, np.hstack([cover(a, 240, 180), cover(b, 240, 180)]), bar]) for a, b in pairs],
    )
    yield "inset_rounded", [rounded(a, b) for a, b in pairs]
    yield "inset_bordered", [bordered(a, b) for a, b in pairs]
    yield "green_border", [put(green, cv2.resize(picture, (340, 240)), 70, 20) for picture in film]
    yield "telephone", [telephone(picture) for picture in film]
    screen = [[150, 60], [350, 70], [345, 185], [155, 190]]
    yield "screen_in_photograph", [project(photograph, picture, screen) for picture in film]
    yield "meme_with_sticker", [labeled(picture) for picture in film]
    blend = cv2.resize(photograph, (width, height))
    yield "photograph_over_it", [(picture * 0.7 + blend * 0.3).astype(np.uint8) for picture in film]


def crops(film: Film, random: np.random.Generator) -> Iterator[tuple[str, Film]]:
    """Crops and geometric distortions of the film."""
    height, width = film[0].shape[:2]
    window = int(height * 9 / 16)
    middle = (width - window) // 2
    count = len(film)

    def zoomed(picture: Picture, place: int) -> Picture:
        tall, wide = (int(side * (1 - 0.4 * place / count)) for side in (height, width))
        top, left = (height - tall) // 3, (width - wide) // 2
        return cv2.resize(picture[top : top + tall, left : left + wide], (width, height))

    def shaken(picture: Picture) -> Picture:
        tall, wide = int(height * 0.88), int(width * 0.88)
        top, left = random.integers(0, height - tall), random.integers(0, width - wide)
        return cv2.resize(picture[top : top + tall, left : left + wide], (width, height))

    rows, columns = np.mgrid[0:height, 0:width].astype(np.float32)
    across, down = columns / (width / 2) - 1, rows / (height / 2) - 1
    bend = 1 - 0.18 * (across**2 + down**2)
    maps = (across * bend + 1) * width / 2, (down * bend + 1) * height / 2
    top, left = height // 10, width // 10
    lefts = [int((width - window) * (0.5 + 0.5 * np.sin(place / count * 5))) for place in range(count)]
    yield "crop_9_16", [picture[:, middle : middle + window] for picture in film]
    yield "moving_9_16", [picture[:, x : x + window] for x, picture in zip(lefts, film, strict=True)]
    yield "slow_zoom", [zoomed(picture, place) for place, picture in enumerate(film)]
    yield "shaken", [shaken(picture) for picture in film]
    yield "fisheye", [cv2.remap(picture, *maps, cv2.INTER_LINEAR) for picture in film]
    yield (
        "half_off_center",
        [cv2.resize(picture[top : top + height // 2, left : left + width // 2], (width, height)) for picture in film],
    )
    part = np.s_[height // 12 : height - height // 12, width // 8 : width - width // 12]
    yield "mirrored_crop_10_fps", [picture[part][:, ::-1] for picture in film[::2] for _ in (0, 1)]


def colors_and_times(film: Film, random: np.random.Generator) -> Iterator[tuple[str, Film]]:
    """Color changes, speed changes and rotations."""
    height, width = film[0].shape[:2]
    count = len(film)
    rows, columns = np.mgrid[0:height, 0:width]
    off = (columns / (width / 2) - 1) ** 2 + (rows / (height / 2) - 1) ** 2
    dark = (1 - 0.6 * np.clip(off / 2, 0, 1))[..., None]
    sepia = np.array([[0.393, 0.769, 0.189], [0.349, 0.686, 0.168], [0.272, 0.534, 0.131]])

    def old(picture: Picture) -> Picture:
        grain = random.normal(0, 14, picture.shape)
        return np.clip((picture @ sepia.T) * dark + grain, 0, 255).astype(np.uint8)

    def other_hue(picture: Picture) -> Picture:
        hsv = cv2.cvtColor(picture, cv2.COLOR_RGB2HSV)
        hsv[..., 0] = (hsv[..., 0].astype(int) + 30) % 180
        return cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)

    def tiny(picture: Picture) -> Picture:
        return cv2.resize(cv2.resize(picture, (128, int(128 * height / width))), (width, height))

    def brighter(picture: Picture) -> Picture:
        return np.clip(280 * (picture / 255) ** 0.55, 0, 255).astype(np.uint8)

    yield "other_hue", [other_hue(picture) for picture in film]
    yield "old_film", [old(picture) for picture in film]
    yield "bright", [brighter(picture) for picture in film]
    yield "128_pixels", [tiny(picture) for picture in film]
    yield "negative", [255 - picture for picture in film]
    yield "speed_1.5", [film[int(place * 1.5)] for place in range(int(count / 1.5))]
    yield "speed_0.5", [film[place // 2] for place in range(2 * count)]
    yield "backward", film[::-1]
    yield "turned_90", [np.rot90(picture) for picture in film]
    yield "turned_180", [picture[::-1, ::-1] for picture in film]
    yield "upside_down", [picture[::-1] for picture in film]


def among_others(film: Film, fillers: list[Film], random: np.random.Generator) -> Iterator[tuple[str, Film]]:
    """Layouts of four videos, and a compilation with three seconds of the film."""
    height, width = film[0].shape[:2]
    three = [loop(fillers[int(place)], len(film)) for place in random.integers(0, len(fillers), 3)]
    yield (
        "one_of_four",
        [
            np.vstack(
                [
                    np.hstack([cover(a, 240, 136), cover(picture, 240, 136)]),
                    np.hstack([cover(b, 240, 136), cover(c, 240, 136)]),
                ]
            )
            for picture, a, b, c in zip(film, *three, strict=True)
        ],
    )
    whole: Film = []
    for number, place in enumerate(random.permutation(len(fillers))[:5]):
        whole += [cover(picture, width, height) for picture in loop(fillers[place], 3 * RATE)]
        if number == 2:
            whole += film[2 * RATE : 5 * RATE]
    yield "compilation", whole


def make_all(given: argparse.Namespace) -> tuple[list[Path], Path]:
    """Make the original clips and the folder of edited clips, except those that exist."""
    queries, gallery = given.work / "queries", given.work / "gallery"
    for folder in (queries, gallery):
        folder.mkdir(parents=True, exist_ok=True)
    videos = [
        path
        for folder in given.videos
        for path in sorted(folder.rglob("*"))
        if path.suffix.lower() in VIDEO_EXTENSIONS and not any(name in path.name for name in given.leave_out)
    ]
    fillers = [load(path, 0.0) for path in sorted(given.fillers.rglob("*")) if path.suffix.lower() in VIDEO_EXTENSIONS]
    pictures = sorted(given.photographs.rglob("*.jpg"))
    paths = []
    for number, video in enumerate(videos):
        film = load(video, 1.0)
        if len(film) < 5 * RATE // 2:
            continue
        name = f"{number:03d}-{video.stem}"
        random = np.random.default_rng(zlib.crc32(video.name.encode()))
        photograph = cover(
            cv2.cvtColor(cv2.imread(str(pictures[int(random.integers(len(pictures)))])), cv2.COLOR_BGR2RGB),
            480,
            270,
        )
        other = loop(fillers[number % len(fillers)], len(film))
        paths.append(queries / f"{name}.mp4")
        if not paths[-1].exists():
            for edit, edited in (
                *layouts(film, other, photograph),
                *crops(film, random),
                *colors_and_times(film, random),
                *among_others(film, fillers, random),
            ):
                save(edited, gallery / f"{name}.{edit}.mp4")
            save(film, paths[-1], crf=20)
    return paths, gallery


def measure(extractor: str, queries: list[Path], gallery: Path, work: Path) -> dict[str, Any]:
    """Return, per edit, copies above the threshold, median score, and mean reciprocal rank among wrong videos."""
    with Index.open(work / f"{extractor}.vidkin", create=True, extractor=extractor) as index:
        index.add([gallery])
        scores: dict[str, list[float]] = {}
        ranks: dict[str, list[float]] = {}
        wrong = 0
        for query in queries:
            found = {Path(match.path).name: match.score for match in index.search(query, limit=len(index))}
            own = f"{query.stem}."
            others = [score for name, score in found.items() if not name.startswith(own)]
            wrong += sum(score >= BELIEVED for score in others)
            for copy in sorted(gallery.glob(f"{query.stem}.*.mp4")):
                edit, score = copy.name[len(query.stem) + 1 : -4], found.get(copy.name, 0.0)
                scores.setdefault(edit, []).append(score)
                rank = 1 + sum(other >= score for other in others)
                ranks.setdefault(edit, []).append(1 / rank if score > 0 else 0.0)
        videos = len(index)
    return {
        "videos": videos,
        "wrong pairs of .2 or more": wrong,
        "pairs of different videos": videos * len(queries) - sum(map(len, scores.values())),
        "edits": {
            edit: {
                "copies": len(values),
                "found": sum(score >= BELIEVED for score in values),
                "median score": round(statistics.median(values), 3),
                "reciprocal rank": round(statistics.mean(ranks[edit]), 3),
            }
            for edit, values in scores.items()
        },
    }


def format_page(result: dict[str, Any]) -> str:
    """Format the results as a table, sorted by the number of copies that the first extractor finds."""
    extractors = result["extractors"]
    first = next(iter(extractors.values()))
    lines = [
        "# Edits unlike the project's own",
        "",
        f"{result['queries']} pieces of 8 seconds, each searched for among {first['videos']} edits that OpenCV made",
        "(`research/benchmarks/other_edits.py`): copies found with a score of at least .2, and the median score of "
        "all of them.",
        "",
        f"| edit | {' | '.join(f'`{name}`' for name in extractors)} |",
        "|---|" + "---|" * len(extractors),
    ]
    for edit in sorted(first["edits"], key=lambda name: -first["edits"][name]["found"]):
        cells = [figures["edits"][edit] for figures in extractors.values()]
        drawn = [f"{row['found']} of {row['copies']}, {row['median score']:.2f}" for row in cells]
        lines.append(f"| {edit} | {' | '.join(drawn)} |")
    lines += [
        "",
        *(
            f"`{name}`: {figures['wrong pairs of .2 or more']} of {figures['pairs of different videos']} pairs of"
            " different videos score .2 or more."
            for name, figures in extractors.items()
        ),
        "",
        f"Measured on {result['machine']}.",
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--videos", type=Path, nargs="+", required=True, help="folders of videos to edit")
    parser.add_argument(
        "--leave-out", nargs="*", default=[], help="videos whose names contain one of these strings are left out"
    )
    parser.add_argument("--fillers", type=Path, required=True, help="folder of other videos to show next to them")
    parser.add_argument("--photographs", type=Path, required=True, help="folder of JPEG images for backgrounds")
    parser.add_argument("--work", type=Path, required=True, help="working folder (not deleted afterward)")
    parser.add_argument("--extractor", nargs="+", default=["vidkin"], help="extractors to evaluate")
    parser.add_argument("--output", type=Path, help="folder for other_edits.json and other_edits.md")
    given = parser.parse_args()
    queries, gallery = make_all(given)
    result: dict[str, Any] = {"machine": describe_machine(), "queries": len(queries), "extractors": {}}
    for extractor in given.extractor:
        figures = result["extractors"][extractor] = measure(extractor, queries, gallery, given.work)
        print(f"{extractor}: {figures['wrong pairs of .2 or more']} wrong pairs of {BELIEVED} or more")
        for edit, row in sorted(figures["edits"].items(), key=lambda item: -item[1]["found"]):
            print(f"  {edit:24s} {row['found']:3d} of {row['copies']:3d}, median {row['median score']:.2f}")
    if given.output:
        (given.output / "other_edits.json").write_text(json.dumps(result, indent=1) + "\n")
        (given.output / "other_edits.md").write_text(format_page(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
