"""Detectors by name: settings, model folders, registered ones and those of other packages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.shots import (
    KnownCutsDetector,
    available_detectors,
    open_detector,
    register_detector,
    with_threshold,
)
from vidkin.shots import registry as registry_module

PLUGIN = """
from vidkin.shots import DetectedCut, KnownCutsDetector

class Middle(KnownCutsDetector):
    def __init__(self, *, frame: int = 10):
        super().__init__([DetectedCut(frame)])
"""


class EverySecond(KnownCutsDetector):
    """A detector with a setting of each type and an optional model."""

    def __init__(self, model: Path | None = None, *, n: int = 30, share: float | None = None, mode: str = "a") -> None:
        super().__init__()
        self.settings = (model, n, share, mode)


@pytest.fixture
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo the registrations of a test."""
    monkeypatch.setattr(registry_module._DETECTORS, "_entries", dict(registry_module._DETECTORS._entries))


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with an entry point, on this process's import path."""
    (tmp_path / "middle_detector.py").write_text(PLUGIN)
    about = tmp_path / "middle_detector-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: middle-detector\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[vidkin.shot_detectors]\nmiddle = middle_detector:Middle\n")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_package_detectors_are_registered() -> None:
    assert available_detectors() == (
        "content",
        "cuts",
        "default",
        "shotdetect",
        "svd",
    )
    assert type(open_detector()) is type(open_detector("cuts?hard=0.4"))
    assert open_detector("default").name == "default"


def test_importing_the_registry_does_not_import_torch() -> None:
    code = "import sys; from vidkin.shots import open_detector; open_detector('svd'); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.large
def test_opening_the_default_detector_imports_no_training_or_index() -> None:
    code = (
        "import sys; from vidkin.shots import open_detector; open_detector('cuts'); "
        "rooms = ('training', 'datasets', 'index', 'metric.losses', 'shots.train'); "
        "print([name for name in sys.modules if name.startswith(tuple(f'vidkin.{room}' for room in rooms))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.usefixtures("_own_registry")
def test_detector_can_be_registered() -> None:
    register_detector("every", EverySecond)
    detector = open_detector("every?n=7&share=.5&mode=b")
    assert isinstance(detector, EverySecond)
    assert detector.settings == (None, 7, 0.5, "b")
    assert detector.name == "every?n=7&share=.5&mode=b"
    other = open_detector("every:some/folder?n=1")
    assert isinstance(other, EverySecond)
    assert other.settings == (Path("some/folder"), 1, None, "a")
    register_detector("of", EverySecond, usage="of:FOLDER")
    assert {"every", "of:FOLDER"} <= set(available_detectors())
    with pytest.raises(InvalidArgumentError, match=r"the prefix 'every' is in use; choose one other than"):
        register_detector("every", EverySecond)
    with pytest.raises(
        InvalidArgumentError, match=r"prefix of a shot detector must consist of letters, digits, .* got 'a b'"
    ):
        register_detector("a b", EverySecond)


def test_detector_of_an_installed_package_is_found(plugin: Path) -> None:
    assert "middle" in available_detectors()
    detector = open_detector("middle?frame=3")
    assert type(detector).__name__ == "Middle"
    assert detector.name == "middle?frame=3"
    with pytest.raises(InvalidArgumentError, match=r"'middle\?x=1' has no setting 'x'; choose from frame"):
        open_detector("middle?x=1")
    with pytest.raises(InvalidArgumentError, match=r"'center' is not a shot detector; choose from .*middle"):
        open_detector("center")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("canny", r"'canny' is not a shot detector; choose from .*shotdetect.*, or use the folder"),
        ("", r"'' is not a shot detector; choose from content"),
        ("content:folder", r"content must be used without a folder, got 'content:folder'"),
        ("content?limit=3", r"has no setting 'limit'; choose from min_scene_len, threshold"),
        ("svd?threshold=3", r"has no setting 'threshold'; choose from none"),
        ("content?threshold=high", r"threshold must be a number, got 'high'"),
        ("content?min_scene_len=1.5", r"min_scene_len must be a whole number, got '1.5'"),
        ("content?threshold", r"settings must have the form name=value&name=value, got 'threshold'"),
        ("svd?a=1&a=2", r"sets a twice; set it once"),
    ],
)
def test_unknown_detector_names_are_rejected(name: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        open_detector(name)


def test_threshold_is_a_setting_of_the_detector() -> None:
    assert with_threshold("shotdetect", 75.0) == "shotdetect?threshold=75"
    assert with_threshold("shotdetect?min_scene_len=3", 7.5) == "shotdetect?min_scene_len=3&threshold=7.5"
    assert with_threshold("cuts", 0.25) == "cuts?hard=0.25&gradual=0.25"
    open_detector(with_threshold("cuts", 0.25))
    with pytest.raises(InvalidArgumentError, match="detector 'svd' has no threshold"):
        with_threshold("svd", 1.0)
    with pytest.raises(InvalidArgumentError, match="'canny' is not a shot detector"):
        with_threshold("canny", 1.0)
