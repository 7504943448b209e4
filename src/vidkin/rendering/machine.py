"""Which parts of the machine work: versions, codecs, extractors; what ``vidkin doctor`` reports."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from vidkin._version import __version__
from vidkin.datasets import PHOTOGRAPHS, photograph
from vidkin.errors import CollectionDamagedError, MissingPartError, VidkinError
from vidkin.features import open_extractor
from vidkin.features.onnx import import_onnxruntime
from vidkin.features.pretrained import import_timm, import_torchvision
from vidkin.index import Index, check_files
from vidkin.index.storage.opening import open_place
from vidkin.media import Frames
from vidkin.rendering.text import number

PartState = Literal["ok", "missing", "broken"]

_PACKAGES = (
    "torch",
    "av",
    "pylance",
    "numpy",
    "scikit-image",
    "matplotlib",
)

_WEB_PACKAGES = ("fastapi", "uvicorn", "jinja2")

_MEASURED_WITH = ("vidkin", "torch", "av", "pylance")

# The extra that includes all others, and those for developing vidkin.
_NOT_FOR_USERS = {"all", "bench", "dev", "docs"}

_DECODERS = ("h264", "hevc", "vp9", "av1", "mpeg4", "mpeg2video", "prores", "gif", "mjpeg")

_ENCODERS = ("libx264", "libx265", "libvpx-vp9")


@dataclass(frozen=True, slots=True)
class Finding:
    """The state of one part.

    Attributes:
        name: Name of the part.
        state: ``ok``; ``missing`` for an absent optional part; ``broken`` for a required part that does not work.
        detail: A version, a list, or the cause.
    """

    name: str
    state: PartState
    detail: str


def inspect_machine() -> tuple[Finding, ...]:
    """Test every part by using it, instead of only checking that it is installed."""
    installed, missing = [], []
    for name in _PACKAGES:
        try:
            installed.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    packages = Finding("packages", "ok", ", ".join(installed))
    if missing:
        packages = Finding("packages", "broken", f"not installed: {', '.join(missing)}; run pip install vidkin")
    return (
        Finding("vidkin", "ok", f"{__version__}, Python {platform.python_version()}, {platform.platform()}"),
        packages,
        Finding("extras", "ok", _extras()),
        _try("torch", _torch, needed=True),
        _try("video decoders", lambda: _codecs(_DECODERS, "r"), needed=True),
        _try("video encoders", lambda: _codecs(_ENCODERS, "w"), needed=True),
        _try("vidkin extractor", lambda: _extractor("vidkin"), needed=True),
        _try("classical extractor", lambda: _extractor("classical"), needed=True),
        _try("torchvision", _torchvision, needed=False),
        _try("timm", _timm, needed=False),
        _try("onnxruntime", _onnxruntime, needed=False),
        _try("sample photographs", _photographs, needed=False),
        _try("web app", _web, needed=False),
    )


def describe_machine() -> str:
    """Describe the machine of a measurement in one line: processor, cores, memory, versions and date."""
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
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _MEASURED_WITH)
    return (
        f"{model}, {os.cpu_count()} cores, {memory}Python {platform.python_version()}, {versions}, "
        f"{datetime.date.today()}"
    )


def _try(name: str, use: Callable[[], str], *, needed: bool) -> Finding:
    try:
        return Finding(name, "ok", use())
    # Whatever a half-installed binary package raises on import or first use is the finding.
    except (ImportError, OSError, RuntimeError, VidkinError) as error:
        cause = str(error).strip().splitlines() or [type(error).__name__]
        return Finding(name, "broken" if needed else "missing", cause[0])


def _extras() -> str:
    """Which extras of vidkin are installed, from its own metadata."""
    packages: dict[str, list[str]] = {}
    for requirement in importlib.metadata.requires("vidkin") or ():
        match = re.match(r"([\w.-]+)[^;]*;.*extra == ['\"]([\w-]+)['\"]", requirement)
        if match:
            packages.setdefault(match[2], []).append(match[1])
    there, absent = [], []
    for extra in sorted(packages.keys() - _NOT_FOR_USERS):
        try:
            for package in packages[extra]:
                importlib.metadata.version(package)
            there.append(extra)
        except importlib.metadata.PackageNotFoundError:
            absent.append(extra)
    advice = f" (without {', '.join(absent)}: pip install 'vidkin[{','.join(absent)}]')" if absent else ""
    return (", ".join(there) or "none") + advice


def _torch() -> str:
    import torch

    device = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "no CUDA device"
    return f"{torch.get_num_threads()} of {os.cpu_count()} processors, {device}"


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
        raise RuntimeError(f"PyAV {av.__version__} lacks {names[0]}; run pip install --force-reinstall av")
    return ", ".join(available) + (f" (without {', '.join(missing)})" if missing else "")


def _extractor(name: str) -> str:
    import numpy as np

    extractor = open_extractor(name)
    noise = np.random.default_rng(0).integers(0, 256, (1, 120, 160, 3), dtype=np.uint8)
    features = extractor.extract(Frames(noise, np.zeros(1)))
    regions, dimension = features.values.shape[-2:]
    return f"{extractor.fingerprint}, {regions} regions of {dimension} values"


def _torchvision() -> str:
    return str(import_torchvision().__version__)


def _timm() -> str:
    version = import_timm().__version__
    home = os.environ.get("HF_HUB_CACHE") or os.path.join(
        os.environ.get("HF_HOME", os.path.expanduser("~/.cache/huggingface")), "hub"
    )
    try:
        models = sorted(name for name in os.listdir(home) if name.startswith("models--timm--"))
    except OSError:
        models = []
    if not models:
        return f"{version}; no weights cached; without a network connection use --weights FILE"
    return f"{version}; weights cached: " + ", ".join(name.removeprefix("models--timm--") for name in models)


def _onnxruntime() -> str:
    runtime = import_onnxruntime()
    providers = [name.removesuffix("ExecutionProvider") for name in runtime.get_available_providers()]
    return f"{runtime.__version__}, {', '.join(providers)}"


def _photographs() -> str:
    for name in PHOTOGRAPHS:
        photograph(name)
    return f"{len(PHOTOGRAPHS)} of scikit-image"


def _web() -> str:
    try:
        return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _WEB_PACKAGES)
    except importlib.metadata.PackageNotFoundError as error:
        raise MissingPartError(
            f'{error.name} is not installed; `vidkin serve` needs it: run pip install "vidkin[web]"'
        ) from error


# Whether an index is complete and its model still exists; what ``vidkin doctor`` reports about an index.


INDEX_FILES = "files of the index"

"""Name of the finding about the files of an index."""

_MODEL = "model of the index"


def inspect_index(index: str | os.PathLike[str]) -> tuple[Finding, ...]:
    """Findings about an index; none if there is nothing at this path.

    Raises:
        CollectionNotFoundError: There is something else at this path.
    """
    place = open_place(index)
    if not place.has_folder():
        return ()
    try:
        with Index.open(place, create=False, read_only=True) as opened:
            check_files(place)
            findings = [Finding(INDEX_FILES, "ok", "complete; --repair also reads all of them")]
            missing = opened.store.missing()
            if missing:
                first, cause = next(iter(missing.items()))
                text = (
                    f"parts of {number(len(missing), 'video')} are missing, for example of "
                    f"{opened.store.get(first).path}: {cause}; run `vidkin index` with these videos to rebuild them"
                )
                findings = [Finding(INDEX_FILES, "broken", text)]
            if opened.extractor_name.startswith("model:"):
                try:
                    findings.append(Finding(_MODEL, "ok", opened.extractor.fingerprint))
                except VidkinError as error:
                    findings.append(Finding(_MODEL, "broken", str(error)))
            return tuple(findings)
    except CollectionDamagedError as error:
        return (Finding(INDEX_FILES, "broken", str(error)),)
