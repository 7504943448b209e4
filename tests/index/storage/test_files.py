"""System errors are converted to vidkin errors; bugs are not."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.index.helpers import units
from vidkin.errors import CollectionDamagedError, CollectionError, CollectionLockedError
from vidkin.index import LocalPlace, open_place
from vidkin.index.storage.feature_files import FeatureFiles
from vidkin.index.storage.files import NamedFolders, read_unit_vectors, reading, write_atomically, writing
from vidkin.similarity import FrameFeatures


def test_full_disk_error_says_that_finished_work_is_saved() -> None:
    with (
        pytest.raises(
            CollectionError,
            match=r"^/c: cannot be written \(no space left on the disk\); finished work is saved",
        ),
        writing("/c"),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(CollectionError, match="no space left on the disk"), writing("/c"):
        raise OSError("LanceError(IO): Generic error: No space left on device (os error 28), /a/b.rs:1:2")


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.EROFS, "read-only file system"),
        (errno.EACCES, "permission denied"),
        (errno.EDQUOT, "disk quota exceeded"),
    ],
)
@pytest.mark.parametrize("doing", [reading, writing])
def test_missing_permissions_are_not_reported_as_damage(doing: Callable[..., object], number: int, said: str) -> None:
    with pytest.raises(CollectionError, match=said) as caught, doing("/c"):  # type: ignore[attr-defined]
        raise OSError(number, os.strerror(number))
    assert not isinstance(caught.value, CollectionDamagedError)


@pytest.mark.parametrize("doing", [reading, writing])
def test_other_read_errors_are_reported_as_damage(doing: Callable[..., object]) -> None:
    with (
        pytest.raises(CollectionDamagedError) as caught,
        doing("/c/videos.lance", "restore it"),  # type: ignore[attr-defined]
    ):
        raise OSError("LanceError(IO): file size is too small, /home/x/lance/src/utils.rs:172:20")
    assert str(caught.value) == ("/c/videos.lance is damaged (LanceError(IO): file size is too small); restore it")


def test_vidkin_errors_pass_unchanged() -> None:
    for error in (CollectionLockedError("taken"), ZeroDivisionError("a bug"), KeyboardInterrupt()):
        with pytest.raises(type(error)) as caught, reading("/c"):
            raise error
        assert caught.value is error
    with pytest.raises(TypeError), writing("/c"):
        raise TypeError("a bug")


def test_store_panic_is_reported_as_damage() -> None:
    panic = type("PanicException", (BaseException,), {})
    for doing in (reading, writing):
        with pytest.raises(CollectionDamagedError, match=r"/c is damaged \(range end index 4\)"), doing("/c"):
            raise panic("range end index 4")


def test_files_are_written_atomically(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, place = tmp_path / "a.json", LocalPlace(tmp_path)
    write_atomically(place, "a.json", b"one")
    assert path.read_bytes() == b"one"

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CollectionError, match="no space left on the disk"):
        write_atomically(place, "a.json", b"two")
    assert path.read_bytes() == b"one"
    assert [item.name for item in tmp_path.iterdir()] == ["a.json"]


def test_missing_tensor_is_reported_as_damage(tmp_path: Path) -> None:
    path, place = tmp_path / "a.safetensors", LocalPlace(tmp_path)
    assert read_unit_vectors(place, path.name, "vectors") is None
    save_file({"other": np.zeros(2, np.float32)}, path)
    with pytest.raises(CollectionDamagedError, match=r"a\.safetensors is damaged \('vectors'\)"):
        read_unit_vectors(place, path.name, "vectors")
    path.write_bytes(b"\xff" * 40)
    with pytest.raises(CollectionDamagedError, match="doctor --repair"):
        read_unit_vectors(place, path.name, "vectors")
    save_file({"vectors": np.array([1.0, np.nan])}, path)
    with pytest.raises(CollectionDamagedError, match="the stored values are corrupted"):
        read_unit_vectors(place, path.name, "vectors")
    save_file({"vectors": np.ones(2, np.float32)}, path)
    vectors = read_unit_vectors(place, path.name, "vectors")
    assert vectors is not None
    assert vectors.tolist() == [1.0, 1.0]


def test_features_are_written_atomically_and_not_through_links(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    files = FeatureFiles(open_place(tmp_path))
    folder = tmp_path / "features" / "000000"
    folder.mkdir(parents=True)
    (folder / "000000001.safetensors").symlink_to(precious)
    features = FrameFeatures.of_whole(
        units(np.ones((2, 4, 16), np.float32)),
        np.array([0.0, 1.0], np.float64),
        np.ones(2, np.float32),
    )
    files.write(1, features)
    assert precious.read_text() == "mine"
    assert np.array_equal(files.read(1).timestamps, features.timestamps)
    (folder / ".0123456789abcdef.part.safetensors").write_bytes(b"half of")
    files.remove_unfinished()
    assert [path.name for path in folder.iterdir()] == ["000000001.safetensors"]


def test_folder_in_different_case_contains_a_path_if_case_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    films, asked = tmp_path / "Films", tmp_path / "films"
    folders = NamedFolders([str(asked)])
    assert folders.holding(f"{asked}/a.mp4") == str(asked)
    assert folders.holding(f"{asked}er/a.mp4") is None
    # This file system is case-sensitive, so these are different folders.
    assert NamedFolders([str(asked)]).holding(f"{films}/old/a.mp4") is None
    monkeypatch.setattr(os.path, "samefile", lambda path, other: path.casefold() == other.casefold())
    assert folders.holding(f"{films}/old/a.mp4") == str(films)
    assert folders.holding(f"{films}er/a.mp4") is None
    assert NamedFolders(["/"]).holding("/a.mp4") == "/"
    # Of nested folders, the outermost is used, because its rules cover more folders.
    assert NamedFolders([f"{asked}/old", str(asked)]).holding(f"{asked}/old/a.mp4") == str(asked)
