"""What the benchmarks of shots share: one frame network whose features are made once, and a head for every run."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

from vidkin.errors import InvalidArgumentError
from vidkin.rendering.json_values import as_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vidkin.models import ClipEncoder

__all__ = [
    "HeadStore",
    "check_output",
    "check_same_data",
    "kept_run",
    "machine_text",
    "mean_and_deviation",
    "plus_minus",
    "write_figures",
]

Progress = Callable[[int, int, str], None]

# What benchmarks keep of data; features are kept under a digest of theirs.
_KEPT = ("runs", "highlights", "composed-train", "composed-test")
_NETWORK = "timm:mobilenetv2_100?pad_type=same"


class HeadStore:
    """Clip encoders on one frozen frame network (MobileNetV2), and features of videos kept in a folder.

    Args:
        weights: Of the frame network, a safetensors file; None takes those of the hub.
        folder: Where features are kept: an interrupted benchmark does not make them again.
        window: Frames a clip.
        size: Pixels at the side of a frame.
        units: Of the fully connected layer and of the LSTM.
    """

    def __init__(
        self, weights: Path | None, folder: Path, *, window: int, size: int = 128, units: int = 128
    ) -> None:
        from vidkin.models import EncoderConfig

        self._weights = weights
        self._folder = folder
        self._config = EncoderConfig(
            kind="clip",
            backbone=_NETWORK,
            trainable="head",
            hidden=units,
            lstm=units,
            frames=window,
            size=size,
            fit="stretch",
            mean=(0.5, 0.5, 0.5),
            std=(0.5, 0.5, 0.5),
        )
        self._network: ClipEncoder | None = None
        self._key = ""

    def model(self, seed: int) -> ClipEncoder:
        """A fresh head on the frame network, in eval mode."""
        from vidkin.models import ClipEncoder, build_model

        model = build_model(self._config, weights=self._weights, seed=seed)
        assert isinstance(model, ClipEncoder)
        return model.eval()

    def features(
        self, paths: Sequence[Path], *, on_progress: Progress | None = None
    ) -> list[NDArray[np.float32]]:
        """Features [T, F] of all frames of each video."""
        found = []
        for done, path in enumerate(paths):
            if on_progress is not None:
                on_progress(done, len(paths), path.name)
            found.append(self._features(path))
        return found

    def _features(self, path: Path) -> NDArray[np.float32]:
        import numpy as np

        from vidkin.shots.learned import video_features

        network = self._frame_network()
        # The name says what the features are of: these bytes, through this network.
        digest = hashlib.sha256(path.read_bytes() + self._key.encode()).hexdigest()[:24]
        kept = self._folder / f"{digest}.npy"
        if kept.is_file():
            loaded: NDArray[np.float32] = np.load(kept, allow_pickle=False)
            return loaded
        rows, _ = video_features(network, path, size=self._config.size)
        self._folder.mkdir(parents=True, exist_ok=True)
        partial = kept.with_suffix(".partial.npy")
        np.save(partial, rows, allow_pickle=False)
        partial.replace(kept)
        return rows

    def _frame_network(self) -> ClipEncoder:
        if self._network is None:
            self._network = self.model(0)
            digest = hashlib.sha256(f"{_NETWORK} {self._config.size} {self._config.fit}".encode())
            for name, tensor in sorted(self._network.backbone.state_dict().items()):
                digest.update(name.encode() + tensor.contiguous().numpy().tobytes())
            self._key = digest.hexdigest()
        return self._network


def kept_run(folder: Path, settings: Sequence[object], run: Callable[[], Any]) -> Any:
    """What a run with these settings gave earlier, or gives now: an interrupted benchmark goes on where it stopped."""
    name = hashlib.sha256(repr(settings).encode()).hexdigest()[:20]
    path = folder / f"{name}.json"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(as_json(run())), encoding="utf-8")
        partial.replace(path)
    return json.loads(path.read_text(encoding="utf-8"))


def mean_and_deviation(values: Sequence[float]) -> dict[str, Any]:
    """Mean, sample standard deviation (None for one value), and the values."""
    return {
        "mean": mean(values),
        "deviation": stdev(values) if len(values) > 1 else None,
        "values": list(values),
    }


def machine_text() -> str:
    """What figures were measured on, in one line."""
    import os
    import platform
    from importlib.metadata import version

    packages = ", ".join(f"{name} {version(name)}" for name in ("vidkin", "torch", "av"))
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {packages}"


def check_output(output: Path | None) -> None:
    """Refuse, before anything is measured, a file that figures cannot be written to.

    Raises:
        InvalidArgumentError: It is a folder, or its folder cannot be made.
    """
    if output is None:
        return
    if output.is_dir():
        raise InvalidArgumentError(f"--output must name a file, {output} is a folder")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=output.parent):
            pass
    except OSError as error:
        raise InvalidArgumentError(
            f"--output cannot be written into {output.parent}: {error.strerror or error}"
        ) from error


def write_figures(result: Mapping[str, Any], output: Path | None) -> None:
    """Write figures as JSON, if a file is named.

    Raises:
        MediaError: It cannot be written.
    """
    if output is not None:
        from vidkin.media import whole_file

        with whole_file(output) as partial:
            partial.write_text(json.dumps(as_json(result), indent=1) + "\n", encoding="utf-8")


def check_same_data(
    work: Path, benchmark: str, inputs: Mapping[str, Path | None], *, written: Sequence[Path | None] = ()
) -> None:
    """Keep in ``work`` which data its runs are of, so that figures of other data are never taken for those of these.

    Args:
        work: Where runs are kept.
        benchmark: Whose.
        inputs: Option and file or folder; files are told apart by name and size.
        written: What the benchmark writes beside ``work``: it may lie in a folder of the data.

    Raises:
        InvalidArgumentError: ``work`` holds runs of other data, or cannot be written.
    """
    own = [path.absolute() for path in (work, *written) if path is not None]
    found = {option: _contents(path, own) for option, path in inputs.items()}
    kept = work / f"{benchmark}-data.json"
    try:
        if kept.is_file() and any((work / name).is_dir() for name in _KEPT):
            before = json.loads(kept.read_text(encoding="utf-8"))
            other = [option for option, content in found.items() if before.get(option) != content]
            if other:
                raise InvalidArgumentError(
                    f"{work} holds runs with another {', '.join(other)}, which would be mixed with these; "
                    "give another folder as --work"
                )
        else:
            work.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(found), encoding="utf-8")
    except OSError as error:
        raise InvalidArgumentError(f"--work {work} cannot be used: {error.strerror or error}") from error


def _contents(path: Path | None, own: Sequence[Path]) -> str | None:
    """A digest of the names and sizes of files but a benchmark's own; None for nothing."""
    if path is None:
        return None
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    listed = [
        (each.name if each == path else each.relative_to(path).as_posix(), each.stat().st_size)
        for each in files
        if not any(each.absolute().is_relative_to(one) for one in own)
    ]
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()[:20]


def plus_minus(value: Mapping[str, Any]) -> str:
    """What `mean_and_deviation` gives, in per cent: ``91.2 ± 1.3``."""
    deviation = "" if value["deviation"] is None else f" ± {100 * value['deviation']:.1f}"
    return f"{100 * value['mean']:.1f}{deviation}"
