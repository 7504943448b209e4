"""Accuracy of the edits reported by `vidkin duplicates` on real footage.

    python research/benchmarks/copy_kinds.py [--data FOLDER] [--half develop|held-out] [--work FOLDER] \
        [--output FILE.json]

Six seconds of four sources (from every second one by name; the other half is for development) are encoded as H.264 with
288 lines and edited in each of the ways below. FFmpeg's muxers make remuxed files and stream copies; `apply_edit` makes
everything else. Each copy is compared with its source as a group member is: by features, match, packets and frames. The
output lists the kinds reported for each edit and their counts, missed and wrong kinds, errors of the reported amounts,
and CPU time per member.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path

import av

from _halves import half_of, parse_arguments, write_results
from vidkin.index import Difference, compare
from vidkin.index.duplicates.comparisons import FileRecord, PairResult
from vidkin.index.duplicates.differences import find_differences
from vidkin.index.storage.records import VideoRecord
from vidkin.media import probe, write_clip
from vidkin_research.copies.applying import apply_edit
from vidkin_research.copies.edits import EDITS

SECONDS, LINES, MOST_SOURCES = 6.0, 288, 4
# Edit -> required kinds, kinds also accepted because the edit implies them, and the amount.
EXPECTED: dict[str, tuple[set[str], set[str], float | None]] = {
    "remux": ({"other container"}, set(), None),
    "stream_copy": ({"cut without re-encoding", "trimmed"}, set(), None),
    "reencode": ({"re-encoded"}, set(), None),
    "resize": ({"lower resolution"}, set(), 0.5),
    "crop": ({"cropped"}, set(), 0.7),
    "tight_crop": ({"cropped"}, set(), 0.49),
    "vertical_crop": ({"cropped"}, set(), None),
    "letterbox": ({"bars added"}, set(), 0.24),
    "pillarbox": ({"bars added"}, set(), 0.24),
    "blurred_borders": ({"borders added"}, {"lower resolution"}, None),
    "colored_borders": ({"borders added"}, {"lower resolution"}, None),
    "inset_45": ({"inside another picture"}, set(), None),
    "aspect": ({"other aspect ratio"}, {"lower resolution", "more pixels"}, None),
    "logo": ({"logo"}, {"caption"}, None),
    "caption": ({"caption"}, set(), None),
    "grey": ({"without color"}, set(), None),
    "sepia": ({"other colors"}, set(), None),
    "brighter": ({"brighter"}, set(), None),
    "darker": ({"darker"}, set(), None),
    "mirror": ({"mirrored"}, set(), None),
    "mirror_crop": ({"mirrored", "cropped"}, set(), 0.64),
    "faster": ({"speed"}, set(), 1.25),
    "double_speed": ({"speed"}, set(), 2.0),
    "reordered": ({"reordered"}, set(), None),
    "first_half": ({"trimmed"}, {"re-encoded"}, None),
    "combined": ({"cropped", "caption", "without color"}, set(), 0.64),
}


def main() -> None:
    """Make the copies, compare them and print the results."""
    given = parse_arguments(__doc__)
    work = given.work or Path(tempfile.mkdtemp(prefix="vidkin-kinds-"))
    usable = [path for path in half_of(given.data, given.half) if probe(path).duration >= SECONDS]
    sources = usable[:: max(1, len(usable) // MOST_SOURCES)][:MOST_SOURCES]
    said: dict[str, Counter[str]] = {edit: Counter() for edit in EXPECTED}
    missed: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    off: dict[str, list[float]] = {}
    seconds = []
    for number, path in enumerate(sources):
        source = work / f"{number:02d}-{path.stem}.mp4"
        filler = sources[(number + 1) % len(sources)]
        if not source.exists():
            work.mkdir(parents=True, exist_ok=True)
            write_clip(path, source, start=0.0, end=SECONDS, crf=18, short_side=LINES)
        for edit, (must, may, amount) in EXPECTED.items():
            copy = make(source, edit, work, number, filler)
            found, taken = differences(copy, source)
            seconds.append(taken)
            kinds = {difference.kind for difference in found}
            said[edit].update(kinds or {"nothing"})
            missed[edit] += bool(must - kinds)
            wrong[edit] += bool(kinds - must - may)
            stated = [each.amount for each in found if each.kind in must and each.amount is not None]
            if amount is not None and stated:
                off.setdefault(edit, []).append(abs(stated[0] - amount) / amount)
            print(number, edit, *sorted(kinds), "" if not kinds - must - may else "WRONG", flush=True)
    report(given, said, missed, wrong, off, seconds, len(sources))


def report(
    given: argparse.Namespace,
    said: dict[str, Counter[str]],
    missed: Counter[str],
    wrong: Counter[str],
    off: dict[str, list[float]],
    seconds: list[float],
    sources: int,
) -> None:
    """Print the table and write the results as JSON."""
    print(f"\n{'edit':16} {'missed':>6} {'wrong':>6} {'amount off':>10}  said")
    for edit, kinds in said.items():
        amounts = f"{100 * max(off[edit]):.1f} %" if edit in off else ""
        words = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
        print(f"{edit:16} {missed[edit]:6} {wrong[edit]:6} {amounts:>10}  {words}")
    total = sources * len(said)
    figures = {
        "sources": sources,
        "copies": total,
        "said all that was made": f"{total - missed.total()} of {total}",
        "said something that was not made": f"{wrong.total()} of {total}",
        "processor s a member, median": round(statistics.median(seconds), 2),
        "processor s a member, largest": round(max(seconds), 2),
    }
    edits = {edit: {"missed": missed[edit], "wrong": wrong[edit], "said": dict(said[edit])} for edit in said}
    write_results(given, {**figures, "edits": edits})


def make(source: Path, edit: str, work: Path, seed: int, filler: Path) -> Path:
    """Make an edited copy, unless it exists."""
    target = work / f"{source.stem}.{edit}{'.mkv' if edit == 'remux' else '.mp4'}"
    if target.exists():
        return target
    if edit in EDITS:
        more = {"filler": filler} if EDITS[edit].needs_filler else {}
        apply_edit(source, target, edit, seed=seed, **more)  # type: ignore[arg-type]
    elif edit == "first_half":
        write_clip(source, target, start=0.0, end=probe(source).duration / 2, crf=26)
    else:
        copy_packets(source, target, None if edit == "remux" else 0.6)
    return target


def copy_packets(source: Path, target: Path, share: float | None) -> None:
    """Copy all compressed frames, or only the first ones, into another file."""
    with av.open(str(source)) as given, av.open(str(target), "w") as made:
        stream = made.add_stream_from_template(given.streams.video[0])
        packets = [packet for packet in given.demux(video=0) if packet.dts is not None]
        for packet in packets if share is None else packets[: round(share * len(packets))]:
            packet.stream = stream
            made.mux(packet)


def differences(copy: Path, source: Path) -> tuple[tuple[Difference, ...], float]:
    """Return the differences reported for a copy, and the CPU time, which does not include the match given."""
    match = compare(copy, source)
    result = PairResult(match.score, True, (1.0, 1.0), match.segments)
    records = [record_of(path) for path in (copy, source)]
    begin = time.process_time()
    found = find_differences(records[0], records[1], result)
    return found, time.process_time() - begin


def record_of(path: Path) -> FileRecord:
    """Return the record of a file as the index stores it."""
    info = probe(path)
    record = VideoRecord(
        path=str(path),
        size=info.size_bytes,
        mtime_ns=1,
        content_hash=path.name,
        duration=info.duration,
        width=info.width,
        height=info.height,
        frame_rate=info.frame_rate,
        codec=info.codec,
        frames=8,
        id=1,
    )
    return FileRecord(record)


if __name__ == "__main__":
    main()
