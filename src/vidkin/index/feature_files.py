"""Features of each video as one safetensors file, on disk or on object storage."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vidkin.index.store import StoredFeatures

__all__ = ["FeatureFiles"]

_SUFFIX = ".safetensors"
_FILES_A_FOLDER = 1000
_TYPES = {"F16": np.float16, "F32": np.float32, "F64": np.float64}


class FeatureFiles:
    """Features by video id.

    Plain files and not a table, because they are read whole, by the hundred for every search, and never
    searched: a hundred videos come in a tenth of the time that a columnar table takes, and nothing is ever
    rewritten. A file counts only once something else refers to its id, so half a file is no harm.

    Args:
        location: A folder, or an address of object storage (``s3://bucket/folder``).
    """

    def __init__(self, location: str) -> None:
        from pyarrow import fs

        if "://" in location:
            self._files, self._base = fs.FileSystem.from_uri(location)
        else:
            self._files, self._base = fs.LocalFileSystem(), os.path.abspath(location)

    def write(self, video_id: int, features: StoredFeatures) -> None:
        """Keep these, in place of what there was."""
        from safetensors.torch import save

        names = ("values", "timestamps", "information", "baseline")
        content = save({name: getattr(features, name).detach().cpu().contiguous() for name in names})
        path = self._path(video_id)
        self._files.create_dir(path.rpartition("/")[0], recursive=True)
        with self._files.open_output_stream(path) as file:
            file.write(content)

    def read(self, video_id: int) -> StoredFeatures:
        """Those of one video; :class:`FileNotFoundError` if there are none."""
        with self._files.open_input_file(self._path(video_id)) as file:
            content = np.empty(file.size(), np.uint8)
            file.readinto(content)
        # The four tensors are views of the one piece of memory that was read into.
        start = 8 + int(content[:8].view("<u8")[0])
        header: dict[str, Any] = json.loads(content[8:start].tobytes())
        return StoredFeatures(
            **{
                name: _tensor(content[start:], entry)
                for name, entry in header.items()
                if name != "__metadata__"
            }
        )

    def remove(self, video_ids: Iterable[int]) -> None:
        """Delete these; ids without a file are ignored."""
        for video_id in video_ids:
            try:
                self._files.delete_file(self._path(video_id))
            except FileNotFoundError:
                continue

    def ids(self) -> NDArray[np.int64]:
        """Ids of all videos that have a file, whole or not."""
        from pyarrow import fs

        listing = self._files.get_file_info(fs.FileSelector(self._base, recursive=True, allow_not_found=True))
        names = (info.base_name for info in listing if info.type == fs.FileType.File)
        stems = (name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))
        return np.array(sorted(int(stem) for stem in stems if stem.isdigit()), dtype=np.int64)

    def _path(self, video_id: int) -> str:
        return f"{self._base}/{video_id // _FILES_A_FOLDER:06d}/{video_id:09d}{_SUFFIX}"


def _tensor(data: NDArray[np.uint8], entry: dict[str, Any]) -> torch.Tensor:
    start, end = entry["data_offsets"]
    return torch.from_numpy(data[start:end].view(_TYPES[entry["dtype"]]).reshape(entry["shape"]))
