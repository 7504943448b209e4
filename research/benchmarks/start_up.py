"""User-visible cost: installed size, start-up, search, indexing of short and long videos, memory and shot detection.

    python research/benchmarks/start_up.py [--python NAME=VENV/bin/python ...] [--only info search ...] \
        [--output FILE.json]

vidkin is installed in each environment; several environments (the one with the older checkout first) are measured in
the same run, interleaved, so that load on the machine affects all alike. Results are medians over rounds of CPU time
(of a command with all its processes) and wall time. Media are created once from the measurement data (VIDKIN_DATA or
--data): 328 clips of 2 to 16 s, and an edited clip of 8 s as the query. FFmpeg is the binary of the package
imageio-ffmpeg.

* ``size``: MiB of the packages required by vidkin without extras, without bytecode.
* ``help``, ``info``, ``search``, ``cuts``: the commands.
* ``open``: searches in an open index, the first and later ones.
* ``index``: a folder of longer videos, compared with running ``ffmpeg -vf fps=1 -f null`` on one file after another.
* ``worker``: a process that describes videos, from its start until it is ready for the first file.
* ``clips``: the short clips with two workers, compared with two ffmpeg processes at a time.
* ``shots``: `vidkin.detect_shots` in a running process, compared with decoding with PyAV.

The exit status is 1 if the last environment misses a target.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import imageio_ffmpeg
import numpy as np
import psutil

from vidkin.media import probe
from vidkin.rendering.machine import describe_machine

FFMPEG = imageio_ffmpeg.get_ffmpeg_exe()
SUFFIXES = {".mp4", ".mkv", ".webm", ".mov", ".avi"}
CLIPS, SHORTEST, LONGEST, QUERY_SECONDS = 328, 2.0, 16.0, 8.0

# Measurement -> (target, whether lower is better).
TARGETS: dict[str, tuple[float, bool]] = {
    "installed size, MiB": (650, True),
    "vidkin --help, processor s": (0.2, True),
    "vidkin info, processor s": (0.45, True),
    "vidkin search, processor s": (1.0, True),
    "vidkin search, peak MiB": (280, True),
    "Index.search in an open index, processor s": (0.4, True),
    "vidkin index, share of ffmpeg's speed": (1.0, False),
    "vidkin index, share of ffmpeg's speed, without start-up": (1.15, False),
    "328 clips, two workers, share of two ffmpegs' speed": (0.8, False),
    "a worker, peak MiB": (180, True),
    "a worker until it is ready, processor s": (0.3, True),
    "detect_shots, share of the speed of decoding": (0.85, False),
}

# Requirements of vidkin without extras, with their own requirements, and the sizes of their files.
_SIZES = """
import json, re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
sizes, todo = {}, ["vidkin"]
while todo:
    name = re.sub(r"[-_.]+", "-", todo.pop()).lower()
    try:
        found = distribution(name)
    except PackageNotFoundError:
        continue
    if name not in sizes:
        files = [Path(str(file.locate())) for file in found.files or () if file.suffix != ".pyc"]
        sizes[name] = sum(path.stat().st_size for path in files if path.is_file()) / 2**20
        todo += [re.match(r"[\\w.-]+", line)[0] for line in found.requires or () if ";" not in line]
import vidkin
files = [path for path in Path(vidkin.__file__).parent.rglob("*") if path.is_file() and path.suffix != ".pyc"]
sizes["vidkin"] = sum(path.stat().st_size for path in files) / 2**20
print(json.dumps(sizes))
"""
# CPU seconds and wall seconds of a first search, of a second, and of later ones, all for the same clip.
_OPEN = """
import json, sys, time
from vidkin import Index
rows = []
with Index.open(sys.argv[1], create=False, read_only=True) as index:
    for _ in range(int(sys.argv[3])):
        begun = time.process_time(), time.perf_counter()
        assert index.search(sys.argv[2], limit=10)
        rows.append([time.process_time() - begun[0], time.perf_counter() - begun[1]])
print(json.dumps(rows))
"""
# Starts up like a worker process, with its environment variables.
_WORKER = """
import os
os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
from vidkin.index.ingest.worker import WorkerSpec, set_threads
set_threads(1)
WorkerSpec("vidkin").open()
"""
# For each file: CPU seconds and wall seconds of decoding, then of shot detection.
_SHOTS = """
import json, sys, time
import av, vidkin
def decoded(path):
    with av.open(path) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        return sum(1 for _ in container.decode(stream))
rows = {path: [] for path in sys.argv[1:]}
for path in rows:
    for way in (decoded, vidkin.detect_shots):
        way(path)
        begun = time.process_time(), time.perf_counter()
        way(path)
        rows[path] += [time.process_time() - begun[0], time.perf_counter() - begun[1]]
print(json.dumps(rows))
"""


@dataclass(frozen=True, slots=True)
class Environment:
    """A Python environment with vidkin.

    Attributes:
        name: Column name.
        python: Python interpreter.
    """

    name: str
    python: str

    def vidkin(self, *words: object) -> list[str]:
        """Build a vidkin command."""
        return [self.python, "-c", "from vidkin.cli import main; main()", *map(str, words)]


@dataclass(frozen=True, slots=True)
class Media:
    """Media used for the measurements.

    Attributes:
        clips: Folder of the short clips.
        query: An edited clip of 8 s from one of the longer videos.
        videos: The longer videos.
        films: Edited videos with cuts.
        work: Folder for indexes.
    """

    clips: Path
    query: Path
    videos: tuple[Path, ...]
    films: tuple[Path, ...]
    work: Path

    def index_of(self, environment: Environment) -> Path:
        """Path of the clip index created by an environment."""
        return self.work / f"{environment.name}.vidkin"


@dataclass(slots=True)
class Run:
    """Cost of a command: wall seconds, and CPU seconds and peak MiB of it and of its largest child."""

    wall: float
    processor: float
    peak: float = 0.0
    worker: float = 0.0


def run(command: Sequence[str]) -> Run:
    """Run a command and discard its output.

    Raises:
        SystemExit: The command failed; the message contains its errors.
    """
    with tempfile.TemporaryFile() as errors:
        begun = time.perf_counter()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, env=variables()
        )
        peaks: dict[int, float] = {}
        while not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            watch(process.pid, peaks)
            time.sleep(0.02)
        seconds = time.perf_counter() - begun
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            raise SystemExit(f"{' '.join(command)}: status {process.returncode}\n{errors.read().decode()[-2000:]}")
    own = peaks.pop(process.pid, 0.0)
    return Run(seconds, usage.ru_utime + usage.ru_stime, own, max(peaks.values(), default=0.0))


def variables() -> dict[str, str]:
    """Return the environment variables without the one that keeps Python from writing bytecode files."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def watch(pid: int, peaks: dict[int, float]) -> None:
    """Record the peak resident memory in MiB of a process and its descendants, as maintained by Linux."""
    try:
        processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for process in processes:
        try:
            lines = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii", errors="replace").splitlines()
        except OSError:
            continue  # the process exited after it was listed
        kib = next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)
        peaks[process.pid] = max(peaks.get(process.pid, 0.0), kib / 1024)


def answer(command: Sequence[str]) -> Any:
    """Run a script and parse the JSON that it prints."""
    done = subprocess.run(command, capture_output=True, text=True, env=variables(), stdin=subprocess.DEVNULL)
    if done.returncode:
        raise SystemExit(f"{command[0]}: status {done.returncode}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


# Test media.


def make_media(data: Path, work: Path, count: int) -> Media:
    """Make the clips and the query unless they exist; the result depends only on the data."""
    videos = tuple(
        path
        for folder in ("videos", "shots")
        for path in sorted((data / folder).rglob("*"))
        if path.suffix.lower() in SUFFIXES
    )
    lengths = {path: probe(path).duration for path in videos}
    clips, query = work / "clips", work / "query.mp4"
    clips.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    sources = [path for path in videos if lengths[path] >= SHORTEST]
    shares = np.asarray([lengths[path] for path in sources])
    for number in range(count):
        source = sources[generator.choice(len(sources), p=shares / shares.sum())]
        # Most clips from phones are short: 3 s on average.
        length = min(SHORTEST + generator.exponential(1.2), LONGEST, lengths[source])
        start = generator.uniform(0, max(lengths[source] - length, 0))
        cut(source, clips / f"{number:03d}.mp4", start, length, "-crf", "22")
    longest = max(sources, key=lambda path: lengths[path])
    cut(longest, query, lengths[longest] / 2, QUERY_SECONDS, "-crf", "30", "-vf", "scale=480:-2")
    films = tuple(path for path in videos if path.is_relative_to(data / "shots") and lengths[path] < 120)
    return Media(clips, query, videos, films, work)


def cut(source: Path, target: Path, start: float, length: float, *options: str) -> None:
    """Encode a segment of a video without sound."""
    if target.is_file():
        return
    part = target.with_suffix(".part.mp4")
    times = ["-ss", f"{start:.3f}", "-i", str(source), "-t", f"{length:.3f}"]
    codec = ["-an", "-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", *options]
    subprocess.run([FFMPEG, "-y", "-v", "error", *times, *codec, str(part)], check=True, stdin=subprocess.DEVNULL)
    part.replace(target)


# Measurements: results of one environment in one round, by name.

Figures = dict[str, float]


def sizes(environment: Environment, media: Media) -> Figures:
    del media
    found = answer([environment.python, "-c", _SIZES])
    for name, size in sorted(found.items(), key=lambda item: -item[1])[:12]:
        print(f"  {environment.name}: {size:8.1f} MiB  {name}", file=sys.stderr)
    return {"installed size, MiB": sum(found.values()), "packages": len(found)}


def helping(environment: Environment, media: Media) -> Figures:
    del media
    return name_results("vidkin --help", run(environment.vidkin("--help")))


def infos(environment: Environment, media: Media) -> Figures:
    return name_results("vidkin info", run(environment.vidkin("info", "--index", media.index_of(environment))))


def search(environment: Environment, media: Media) -> Figures:
    found = run(environment.vidkin("search", media.query, "--index", media.index_of(environment)))
    return {**name_results("vidkin search", found), "vidkin search, peak MiB": found.peak}


def searches(environment: Environment, media: Media) -> Figures:
    command = [environment.python, "-c", _OPEN, str(media.index_of(environment)), str(media.query), "5"]
    (first, first_wall), *later = answer(command)
    processor, wall = (statistics.median(values) for values in zip(*later, strict=True))
    name = "Index.search in an open index"
    return {
        f"{name}, processor s": processor,
        f"{name}, s": wall,
        f"{name}, the first, processor s": first,
        f"{name}, the first, s": first_wall,
    }


def index(environment: Environment, media: Media) -> Figures:
    """Index a folder of longer videos, and a tiny file to measure start-up."""
    tiny = media.work / "tiny.mp4"
    cut(media.query, tiny, 0.0, 0.2, "-vf", "scale=64:48")
    with tempfile.TemporaryDirectory(dir=media.work) as folder:
        start = run(environment.vidkin("index", tiny, "--index", f"{folder}/tiny.vidkin"))
        found = run(environment.vidkin("index", *media.videos, "--index", f"{folder}/long.vidkin"))
    begun, before = time.perf_counter(), os.times()
    for path in media.videos:
        decode_sampled(path)
    theirs = elapsed(begun, before)
    name = "vidkin index, share of ffmpeg's speed"
    return {
        **name_results("vidkin index", found),
        **name_results("vidkin index of one tiny file", start),
        **name_results("ffmpeg fps=1", theirs),
        name: theirs.wall / found.wall,
        f"{name}, without start-up": theirs.wall / (found.wall - start.wall),
        f"{name}, processor time": theirs.processor / found.processor,
        f"{name}, processor time, without start-up": theirs.processor / (found.processor - start.processor),
    }


def clips(environment: Environment, media: Media) -> Figures:
    paths = sorted(media.clips.glob("*.mp4"))
    with tempfile.TemporaryDirectory(dir=media.work) as folder:
        words = ("index", media.clips, "--index", f"{folder}/clips.vidkin", "--workers", "2")
        found = run(environment.vidkin(*words))
    begun, before = time.perf_counter(), os.times()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(decode_sampled, paths))
    theirs = elapsed(begun, before)
    name = f"{len(paths)} clips, two workers"
    return {
        **name_results(name, found),
        **name_results(f"{len(paths)} clips, two ffmpegs", theirs),
        f"{name}, share of two ffmpegs' speed": theirs.wall / found.wall,
        f"{name}, share of two ffmpegs' speed, processor time": theirs.processor / found.processor,
        "a worker, peak MiB": found.worker,
        "vidkin index, its own peak MiB": found.peak,
    }


def worker(environment: Environment, media: Media) -> Figures:
    del media
    return name_results("a worker until it is ready", run([environment.python, "-c", _WORKER]))


def cuts(environment: Environment, media: Media) -> Figures:
    return name_results("vidkin shots of a film", run(environment.vidkin("shots", media.films[0])))


def shots(environment: Environment, media: Media) -> Figures:
    rows = answer([environment.python, "-c", _SHOTS, *map(str, media.films)]).values()
    name = "detect_shots, share of the speed of decoding"
    return {
        name: statistics.median(decoding / detection for _, decoding, _, detection in rows),
        f"{name}, processor time": statistics.median(decoding / detection for decoding, _, detection, _ in rows),
    }


MEASUREMENTS: dict[str, Callable[[Environment, Media], Figures]] = {
    "size": sizes,
    "help": helping,
    "info": infos,
    "search": search,
    "open": searches,
    "worker": worker,
    "clips": clips,
    "index": index,
    "cuts": cuts,
    "shots": shots,
}
# Measurements made only once, and those made in every third round.
_ONCE, _SELDOM = {"size"}, {"clips", "index", "shots"}


def name_results(name: str, found: Run) -> Figures:
    return {f"{name}, processor s": found.processor, f"{name}, s": found.wall}


def decode_sampled(path: Path) -> None:
    """Decode at one frame per second."""
    command = [FFMPEG, "-v", "error", "-i", str(path), "-vf", "fps=1", "-f", "null", "-"]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def elapsed(begun: float, before: os.times_result) -> Run:
    """Return the wall time since ``begun`` and the CPU time that all child processes have used since ``before``."""
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return Run(time.perf_counter() - begun, used)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", nargs="+", action="extend", help="environment as NAME=INTERPRETER (repeatable)")
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("VIDKIN_DATA"),
        help="folder with the measurement data (default: $VIDKIN_DATA)",
    )
    parser.add_argument(
        "--work",
        type=Path,
        help="working folder for clips and indexes, not deleted afterward (default: a temporary folder)",
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--clips", type=int, default=CLIPS, help="number of short clips (fewer only to test this script)"
    )
    parser.add_argument("--only", nargs="+", choices=MEASUREMENTS, default=list(MEASUREMENTS))
    parser.add_argument("--output", type=Path, help="write the results to this JSON file")
    given = parser.parse_args()
    if given.data is None:
        parser.error("no measurement data: set VIDKIN_DATA or pass its folder with --data")
    environments = [
        Environment(name if python else "vidkin", python or name)
        for name, _, python in (text.partition("=") for text in given.python or [sys.executable])
    ]
    with tempfile.TemporaryDirectory() as temporary:
        media = make_media(given.data, (given.work or Path(temporary)).resolve(), given.clips)
        figures = measure(environments, media, given.only, given.rounds)
    medians = {
        name: {figure: statistics.median(values) for figure, values in rows.items()} for name, rows in figures.items()
    }
    missed = show(medians)
    if given.output:
        report = {
            "machine": describe_machine(),
            "rounds": given.rounds,
            "medians": medians,
            "all": figures,
            "targets": {name: wanted for name, (wanted, _) in TARGETS.items()},
        }
        given.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return int(missed)


def measure(
    environments: Sequence[Environment], media: Media, only: Sequence[str], rounds: int
) -> dict[str, dict[str, list[float]]]:
    """Return environment -> measurement -> values, one per round."""
    for environment in environments:
        # A warm-up, which also compiles all modules and loads the files into the file cache.
        words = ("index", media.clips, "--index", media.index_of(environment), "--workers", "2")
        run(environment.vidkin(*words))
        run(environment.vidkin("search", media.query, "--index", media.index_of(environment)))
    figures: dict[str, dict[str, list[float]]] = {environment.name: {} for environment in environments}
    for number in range(rounds):
        # The order alternates from round to round.
        order = environments if number % 2 == 0 else environments[::-1]
        for name in only:
            if (number % 3 and name in _SELDOM) or (number and name in _ONCE):
                continue
            for environment in order:
                for figure, value in MEASUREMENTS[name](environment, media).items():
                    figures[environment.name].setdefault(figure, []).append(value)
            print(f"round {number + 1} of {rounds}: {name}", file=sys.stderr)
    return figures


def show(medians: dict[str, Figures]) -> bool:
    """Print a line for each measurement; return whether the last environment misses a target."""
    print(f"{'':60}" + "".join(f"{name:>12}" for name in medians) + f"{'target':>12}")
    missed = False
    *_, last = medians.values()
    for figure in dict.fromkeys(figure for rows in medians.values() for figure in rows):
        wanted, less = TARGETS.get(figure, (None, True))
        target = "" if wanted is None else f"{'<=' if less else '>='} {wanted:g}"
        values = "".join(f"{rows[figure]:12.3f}" if figure in rows else f"{'':12}" for rows in medians.values())
        print(f"{figure:60}{values}{target:>12}")
        if wanted is not None and figure in last:
            missed |= last[figure] > wanted if less else last[figure] < wanted
    return missed


if __name__ == "__main__":
    sys.exit(main())
