"""The ``vidkin doctor`` report: installed versions, codecs and extractors, and the state of an index."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from vidkin._base.install import install_command
from vidkin._base.registry import import_part, missing_scale, research_hint
from vidkin._version import __version__
from vidkin.errors import CollectionDamagedError, MissingPartError, VidkinError
from vidkin.features import available_extractors, open_extractor
from vidkin.features.onnx_runtime import load_onnxruntime
from vidkin.index import Index, check_files
from vidkin.index.storage.opening import open_place
from vidkin.media import Frames
from vidkin.rendering.reports import available_reports
from vidkin.rendering.text import number
from vidkin.shots import available_detectors, shot_format_names

PartState = Literal["ok", "missing", "broken"]

_PACKAGES = (
    "numpy",
    "onnxruntime",
    "av",
    "pillow",
    "faiss-cpu",
)

_BENCHMARK_PACKAGES = ("vidkin", "numpy", "onnxruntime", "av", "faiss-cpu", "torch")

EXTRAS: Mapping[str, str] = {
    "web": "`vidkin serve`",
    "plots": "plots: frame maps of matches and shot curves as images",
    "train": "training, evaluating and exporting models; timm and torchvision networks",
    "tensorboard": "training curves in TensorBoard",
    "map": "UMAP plot of the index on the Map page",
    "otio": "timelines: `vidkin shots -o film.otio`",
}
"""Purpose of each extra; :func:`inspect_machine` reports on each."""

_RESEARCH, _SCALE = "package vidkin-research", "package vidkin-scale"

_DECODERS = ("h264", "hevc", "vp9", "av1", "mpeg4", "mpeg2video", "prores", "gif", "mjpeg")

_ENCODERS = ("libx264", "libx265", "libvpx-vp9")


@dataclass(frozen=True, slots=True)
class PartCheck:
    """State of one part of the installation or an index.

    Attributes:
        name: Name of the part.
        state: ``ok``; ``missing`` for an optional part that is absent; ``broken`` for a required part that fails.
        detail: A version, a list, or the cause of the failure.
    """

    name: str
    state: PartState
    detail: str


def inspect_machine() -> tuple[PartCheck, ...]:
    """Check every part of the installation by using it, rather than only checking that it is installed."""
    installed = _versions(_PACKAGES)
    packages = PartCheck("packages", "ok", ", ".join(f"{name} {version}" for name, version in installed.items()))
    missing = [name for name in _PACKAGES if name not in installed]
    if missing:
        packages = PartCheck("packages", "broken", f"not installed: {', '.join(missing)}; run {install_command()}")
    return (
        PartCheck("vidkin", "ok", f"{__version__}, Python {platform.python_version()}, {platform.platform()}"),
        packages,
        _try("onnxruntime", _onnxruntime, needed=True),
        _try("video decoders", lambda: _codecs(_DECODERS, "r"), needed=True),
        _try("video encoders", lambda: _codecs(_ENCODERS, "w"), needed=True),
        _try("vidkin extractor", lambda: _extractor("vidkin"), needed=True),
        _try("classical extractor", lambda: _extractor("classical"), needed=True),
        *_extras(),
        _try(_RESEARCH, _research, needed=False),
        _try(_SCALE, _scale, needed=False),
        *(_try(f"registered {noun}", partial(_registered, group, names), needed=True) for noun, group, names in _KINDS),
    )


def describe_machine() -> str:
    """Describe this machine in one line for benchmark results: processor, cores, memory, versions and date."""
    model = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    memory = ""
    if hasattr(os, "sysconf"):
        memory = f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB, "
    versions = ", ".join(f"{name} {version}" for name, version in _versions(_BENCHMARK_PACKAGES).items())
    return (
        f"{model}, {os.cpu_count()} cores, {memory}Python {platform.python_version()}, {versions}, "
        f"{datetime.date.today()}"
    )


def _try(name: str, use: Callable[[], str], *, needed: bool) -> PartCheck:
    try:
        return PartCheck(name, "ok", use())
    # A partly installed binary package fails on import or first use; the error is the result of the check.
    except (ImportError, OSError, RuntimeError, VidkinError) as error:
        cause = str(error).strip().splitlines() or [type(error).__name__]
        return PartCheck(name, "broken" if needed else "missing", cause[0])


def _versions(packages: Sequence[str]) -> dict[str, str]:
    """Return the versions of those packages that are installed."""
    versions = {}
    for name in packages:
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


def _extras() -> list[PartCheck]:
    """Check each vidkin extra; its packages are listed in vidkin's metadata."""
    packages: dict[str, list[str]] = {}
    for requirement in importlib.metadata.requires("vidkin") or ():
        match = re.match(r"([\w.-]+)[^;]*;.*extra == ['\"]([\w-]+)['\"]", requirement)
        if match:
            packages.setdefault(match[2], []).append(match[1])
    return [_try(f"extra {name}", partial(_extra, name, packages.get(name, ())), needed=False) for name in EXTRAS]


def _extra(name: str, packages: Sequence[str]) -> str:
    """Describe the purpose of an extra and the versions of its packages.

    Raises:
        MissingPartError: A package is not installed; the message includes the command to install it.
    """
    purpose = EXTRAS[name]
    installed = _versions(packages)
    absent = [package for package in packages if package not in installed] or ([] if packages else ["its packages"])
    if absent:
        raise MissingPartError(f"{purpose}; not installed: {', '.join(absent)}; install with: {install_command(name)}")
    details = [", ".join(f"{package} {version}" for package, version in installed.items())]
    if name == "train":
        details += [_torch(), _cached_weights()]
    return "; ".join([purpose, *details])


def _research() -> str:
    hint = research_hint("studies")
    if hint:
        raise MissingPartError(hint)
    return "studies for `vidkin benchmark`, readers for public datasets"


def _scale() -> str:
    purpose = "distributed indexing, indexes on object storage"
    missing = missing_scale(purpose)
    if missing is not None:
        raise missing
    return f"{purpose}; " + ", ".join(f"{name} {version}" for name, version in _versions(("ray", "obstore")).items())


# Parts that other packages can register: noun, entry point group, names.
_KINDS: tuple[tuple[str, str, Callable[[], tuple[str, ...]]], ...] = (
    ("extractors", "vidkin.extractors", available_extractors),
    ("shot detectors", "vidkin.shot_detectors", available_detectors),
    ("shot formats", "vidkin.shot_formats", shot_format_names),
    ("reports of duplicates", "vidkin.duplicate_reports", lambda: available_reports()[0]),
    ("reports of recurring segments", "vidkin.recurring_reports", lambda: available_reports()[1]),
)


def _registered(group: str, names: Callable[[], tuple[str, ...]]) -> str:
    """List the registered names of a kind; a name from another package is followed by the package's name.

    Raises:
        VidkinError: An entry point of another package cannot be loaded.
    """
    added = {}
    for entry in importlib.metadata.entry_points(group=group):
        if entry.dist is not None and entry.dist.name != "vidkin":
            added[entry.name] = f"{entry.dist.name} {entry.dist.version}"
            try:
                entry.load()
            # Third-party code can raise any exception on import; the check reports it.
            except Exception as error:
                raise VidkinError(f"{entry.name} from {added[entry.name]} cannot be loaded: {error}") from error
    sources = {name: added.get(name) or added.get(name.partition(":")[0]) for name in names()}
    return ", ".join(name if source is None else f"{name} ({source})" for name, source in sources.items())


def _torch() -> str:
    """Describe the device that torch uses; importing torch reveals missing libraries, which its metadata does not."""
    torch = import_part("torch", extra="train")
    return f"torch uses {torch.cuda.get_device_name(0) if torch.cuda.is_available() else 'no CUDA device'}"


def _codecs(names: tuple[str, ...], mode: Literal["r", "w"]) -> str:
    import av
    from av.codec import Codec
    from av.codec.codec import UnknownCodecError

    available, missing = [], []
    for name in names:
        try:
            Codec(name, mode)
            available.append(name)
        except UnknownCodecError:
            missing.append(name)
    if names[0] in missing:
        raise RuntimeError(f"PyAV {av.__version__} does not support {names[0]}; run pip install --force-reinstall av")
    return ", ".join(available) + (f" (without {', '.join(missing)})" if missing else "")


def _extractor(name: str) -> str:
    import numpy as np

    extractor = open_extractor(name)
    noise = np.random.default_rng(0).integers(0, 256, (1, 120, 160, 3), dtype=np.uint8)
    features = extractor.extract(Frames(noise, np.zeros(1)))
    regions, dimension = features.values.shape[-2:]
    return f"{extractor.fingerprint}, {number(regions, 'region')} with {dimension} dimensions"


def _cached_weights() -> str:
    """List cached timm weights, which can be used without a network connection."""
    home = os.environ.get("HF_HUB_CACHE") or os.path.join(
        os.environ.get("HF_HOME", os.path.expanduser("~/.cache/huggingface")), "hub"
    )
    try:
        models = sorted(name for name in os.listdir(home) if name.startswith("models--timm--"))
    except OSError:
        models = []
    if not models:
        return "no weights cached; without a network connection use --weights FILE"
    return "weights cached: " + ", ".join(name.removeprefix("models--timm--") for name in models)


def _onnxruntime() -> str:
    onnxruntime = load_onnxruntime()
    providers = [name.removesuffix("ExecutionProvider") for name in onnxruntime.get_available_providers()]
    return f"{onnxruntime.__version__}, {', '.join(providers)}"


INDEX_FILES = "files of the index"

"""Name of the check of an index's files."""

_MODEL = "model of the index"


def inspect_index(index: str | os.PathLike[str]) -> tuple[PartCheck, ...]:
    """Check an index; the result is empty if the path does not exist.

    Raises:
        CollectionNotFoundError: The path is not an index.
    """
    place = open_place(index)
    if not place.has_folder():
        return ()
    try:
        with Index.open(place, create=False, read_only=True) as opened:
            check_files(place)
            findings = [PartCheck(INDEX_FILES, "ok", "complete; to read and verify all of them, use --repair")]
            missing = opened.store.missing()
            if missing:
                first, cause = next(iter(missing.items()))
                text = (
                    f"parts of {number(len(missing), 'video')} are missing, for example for "
                    f"{opened.store.get(first).path}: {cause}; run `vidkin index` with these videos to rebuild them"
                )
                findings = [PartCheck(INDEX_FILES, "broken", text)]
            if opened.extractor_name.startswith("model:"):
                try:
                    findings.append(PartCheck(_MODEL, "ok", opened.extractor.fingerprint))
                except VidkinError as error:
                    findings.append(PartCheck(_MODEL, "broken", str(error)))
            return tuple(findings)
    except CollectionDamagedError as error:
        return (PartCheck(INDEX_FILES, "broken", str(error)),)
