"""Recall of frame detection in pages, by the fraction of the page that the frame covers.

    python research/benchmarks/page_rectangles.py [--data FOLDER] [--half develop|held-out] [--output FILE.json]

Eight seconds of each source (from the measurement data, VIDKIN_DATA or --data; every second source by name is held out)
play in slides and menus, light and dark, at random positions. A rectangle counts as found if the intersection over
union with one of the described regions is at least 0.7; for a single image, with one of the boxes offered by the search
page.
"""

from __future__ import annotations

import numpy as np
from PIL import Image

from _halves import data_parser, half_of, resolve_data, write_results
from unrelated_pairs import HEIGHT, WIDTH, Picture, slide
from vidkin.features import find_content_boxes
from vidkin.features.views import overlap
from vidkin.media import read_frames

SHARES = (0.05, 0.08, 0.12, 0.2, 0.35)
SAME, SECONDS = 0.7, 8.0


def in_page(
    film: Picture, share: float, random: np.random.Generator, *, dark: bool
) -> tuple[Picture, tuple[float, ...]]:
    """Frames of a page in which a film plays, and its box as fractions of the page."""
    ground = Image.fromarray(slide(random, dark=dark))
    shape = film.shape[2] / film.shape[1]
    height = min(round((share * WIDTH * HEIGHT / shape) ** 0.5), HEIGHT - 4)
    width = min(round(height * shape), WIDTH - 4)
    left, top = int(random.integers(2, WIDTH - width - 1)), int(random.integers(2, HEIGHT - height - 1))
    frames = []
    for image in film:
        shown = ground.copy()
        shown.paste(Image.fromarray(image).resize((width, height)), (left, top))
        frames.append(np.asarray(shown))
    box = left / WIDTH, top / HEIGHT, (left + width) / WIDTH, (top + height) / HEIGHT
    return np.stack(frames), box


def main() -> None:
    given = resolve_data(data_parser(__doc__))
    films = [read_frames(path, rate=1, end=SECONDS, short_side=240).images for path in half_of(given.data, given.half)]
    rows: dict[str, dict[str, str]] = {}
    for share in SHARES:
        row = rows[f"{share:.0%} of the page"] = {}
        for dark in (False, True):
            random = np.random.default_rng([round(100 * share), dark])
            pages = [in_page(film, share, random, dark=dark) for film in films]
            clips = [find_content_boxes(page) for page, _ in pages]
            images = [find_content_boxes(page[[0, 0]], least=0.02) for page, _ in pages]
            for what, found in (("clips", clips), ("images", images)):
                count = sum(
                    any(overlap(tuple(each), box) >= SAME for each in boxes.tolist())
                    for boxes, (_, box) in zip(found, pages, strict=True)
                )
                row[f"{'dark' if dark else 'light'}, {what}"] = f"{count} of {len(pages)}"
        print(share, row, flush=True)
    write_results(given, {"rectangles found": rows})


if __name__ == "__main__":
    main()
