"""Benchmarks by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from vidkin.errors import InvalidArgumentError
from vidkin_research.public.benchmark import RetrievalBenchmark
from vidkin_research.public.duplicates import read_cc_web_video, read_svd
from vidkin_research.public.incident import read_evve, read_fivr_5k, read_fivr_200k
from vidkin_research.public.segments import read_vcdb, read_vcsl, read_vsc2022

__all__ = ["available_benchmarks", "open_benchmark"]

_READERS: Mapping[str, Callable[[Path], RetrievalBenchmark]] = {
    "cc_web_video": read_cc_web_video,
    "evve": read_evve,
    "fivr-200k": read_fivr_200k,
    "fivr-5k": read_fivr_5k,
    "svd": read_svd,
    "vcdb": read_vcdb,
    "vcsl": read_vcsl,
    "vsc2022": read_vsc2022,
}


def available_benchmarks() -> tuple[str, ...]:
    """Names that :func:`open_benchmark` takes, sorted."""
    return tuple(sorted(_READERS))


def open_benchmark(name: str, folder: str | os.PathLike[str]) -> RetrievalBenchmark:
    """A benchmark from its published annotation files.

    Args:
        name: See :func:`available_benchmarks`.
        folder: Folder of the files, or with a subfolder for each benchmark: ``fivr`` for both forms of FIVR, otherwise
            its name.

    Raises:
        InvalidArgumentError: There is no such benchmark, or a file is missing or damaged.
    """
    if name not in _READERS:
        raise InvalidArgumentError(
            f"dataset must be one of {', '.join(available_benchmarks())}, got {name!r}"
        )
    place = Path(folder).expanduser()
    inner = place / name.partition("-")[0]
    return _READERS[name](inner if inner.is_dir() else place)
