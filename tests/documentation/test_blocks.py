"""Every code block of the documentation runs as printed, or a comment above it says why it is not executed."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections import defaultdict
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest
import torch
from PIL import Image

from tests.cli.conftest import Library, run
from tests.documentation.blocks import PAGES, Block, execute, read_blocks
from tests.features.onnx_files import mean_colors
from tests.rendering.test_players import make_player
from tests.review.synthetic import fill, judge, judge_pairs
from tests.support.colors import write_colors
from tests.support.sounds import RATE, tune, write_sounds
from tests.support.training import write_pictures
from tests.support.videos import encode, pan, photograph
from vidkin._base.registry import research_hint
from vidkin.features import import_timm
from vidkin.index import Index
from vidkin.models import EncoderConfig, build_model, save_model
from vidkin.review import Labels
from vidkin.shots import ShotAnnotation, VideoAnnotation, read_shot_annotations, write_shot_annotations

BLOCKS = [block for page in PAGES for block in read_blocks(page)]
SECTIONS: dict[tuple[str, str], list[Block]] = defaultdict(list)
for _block in BLOCKS:
    if _block.language in ("sh", "python") and _block.lines:
        SECTIONS[_block.page, _block.section].append(_block)
del SECTIONS["README.md", "Use"]  # run by tests/documentation/test_readme.py, which also checks the output


@pytest.fixture(scope="session")
def made_home(tmp_path_factory: pytest.TempPathFactory, library: Library) -> Path:
    """Home folder with videos, photographs and labeled folders under the names used by the pages."""
    home = tmp_path_factory.mktemp("home")
    shutil.copytree(library.folder, home / "Videos")
    for name in ("Downloads", "Films", "Masters", "Photos", "Pictures"):
        (home / name).mkdir()
    shutil.copy(library.folder / "coffee.mp4", home / "Masters")
    shots = [frame for name in ("coffee", "rocket", "chelsea") for frame in pan(name, 20, width=96, height=64)]
    for name in ("one", "two"):
        encode(home / "Films" / f"{name}.mp4", shots, options={"mbtree": "0"})
    for number, name in enumerate(["astronaut", "chelsea", "coffee", "rocket", "brick", "gravel", "grass", "cat"]):
        for folder in ("Photos", "Pictures"):
            picture = Image.fromarray(photograph(name)).resize((160, 120))
            picture.save(home / folder / f"{number}.jpg")
    write_pictures(home / "Birds")
    write_colors(home / "flowers-made")
    shutil.copytree(home / "flowers-made" / "train", home / "Flowers")
    return home


@pytest.fixture
def home(made_home: Path, library: Library, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of ``made_home``; the current folder has the files that the pages name."""
    here = Path.cwd()
    home = here / "home"
    shutil.copytree(made_home, home)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setenv("PATH", str(make_player(here / "bin", "mpv", stays=3).parent), prepend=":")
    shutil.copy(library.clip, "clip.mp4")
    for name in ("a.mp4", "b.mp4"):
        shutil.copy(library.folder / "coffee.mp4", name)
    Image.fromarray(next(pan("coffee", 1))).save("photo.jpg")
    torch.set_num_threads(1)
    return home


def _index_videos(home: Path) -> None:
    run("index", home / "Videos", home / "Masters", "--workers", "1")


def _make_series(home: Path) -> None:
    """Index two episodes with a common opening, and write a recording that shows it twice."""
    season = home / "Series" / "Season1"
    season.mkdir(parents=True)
    opening = list(pan("coffee", 40, width=96, height=64))
    for number, name in enumerate(("rocket", "chelsea"), start=1):
        own = list(pan(name, 60, width=96, height=64))
        encode(season / f"Show S01E0{number}.mp4", [*opening, *own], options={"mbtree": "0"})
    encode(Path("recording.ts"), [*opening, *pan("astronaut", 60, width=96, height=64), *opening])
    run("index", season, "--workers", "1")


def _make_networks(home: Path) -> None:
    from safetensors.torch import save_file

    save_file(import_timm().create_model("mobilenetv2_100").state_dict(), "weights.safetensors")
    mean_colors(Path("encoder.onnx"))


def _make_film(home: Path) -> None:
    """Write a two-minute film at a low frame rate: long enough to select a segment, quick to decode."""
    names = ("coffee", "rocket", "chelsea", "astronaut")
    frames = [frame for name in names for frame in pan(name, 60, width=96, height=64)]
    encode(Path("film.mp4"), frames, rate=2, options={"mbtree": "0"})


def _make_copy(home: Path) -> None:
    shutil.copy("a.mp4", "film.mp4")
    shutil.copy(home / "Videos" / "rocket.mp4", "copy.mp4")


def _make_recordings(home: Path) -> None:
    """Write two recordings of one event with the same sound."""
    samples = tune(14, seed=3)
    for name, seconds in (("a", 0), ("b", 2)):
        write_sounds(Path(f"{name}.mp4"), [samples[seconds * RATE :]], pictures="coffee")


def _make_models(home: Path) -> None:
    for name in ("DIR", "my-model"):
        save_model(build_model(EncoderConfig(kind="image", backbone="small", size=32, width=0.5)), name)


def _fill_reviewed(home: Path) -> None:
    index = Path("collection.vidkin")
    fill(index)
    with Index.open(index, read_only=True) as opened:
        pairs = list(combinations(sorted(record.content_hash for record in opened.videos()), 2))
    judge_pairs(index, [pair for pair in pairs if judge(*pair) != "different"] + pairs[::6])


def _label_films(home: Path) -> None:
    """Write ``labels.json`` with critical shots, and labels of three annotators."""
    names = ("astronaut", "coffee", "chelsea", "rocket")
    annotations = []
    for number in range(4):
        three = [names[(number + place) % 4] for place in range(3)]
        frames = [frame for name in three for frame in pan(name, 24, width=96, height=64, seed=number)]
        path = encode(Path(f"{number}.mp4"), frames, rate=25, options={"mbtree": "0"})
        shots = (ShotAnnotation(0, 24, (16, 24)), ShotAnnotation(24, 48), ShotAnnotation(48, 72))
        annotations.append(VideoAnnotation(path, 25.0, shots))
    for name in ("labels", "anna", "ben", "carla"):
        write_shot_annotations(Path(f"{name}.json"), annotations)
    _make_film(home)


NEEDS: dict[tuple[str, str], list[Callable[[Path], None]]] = {
    ("find.md", "Search"): [_index_videos],
    ("find.md", "Images and sound"): [_index_videos],
    ("find.md", "Coverage"): [_index_videos],
    ("find.md", "Curate a collection"): [_index_videos],
    ("find.md", "Other extractors"): [_make_networks],
    ("copies.md", ""): [_index_videos],
    ("copies.md", "Choose the copy to keep"): [_index_videos],
    ("copies.md", "Compare folders"): [_index_videos],
    ("copies.md", "Before anything is removed"): [_make_copy],
    ("recurring.md", ""): [_make_series],
    ("shots.md", ""): [_make_film],
    ("shots.md", "Labels"): [_label_films],
    ("shots.md", "Train a detector"): [_label_films],
    ("library.md", "Sources"): [_index_videos],
    ("library.md", "Threads, asyncio, processes"): [_index_videos],
    ("library.md", "Cancellation and progress"): [_index_videos],
    ("editors.md", ""): [_index_videos, _make_film, _make_recordings],
    ("train.md", "Verdicts"): [_fill_reviewed],
    ("train.md", "Classifiers"): [_make_networks],
    ("models.md", ""): [_make_models],
    ("models.md", "Encoders from other sources"): [_make_models],
}


# Sections that train several models.
LONG = {
    ("find.md", "Other extractors"),
    ("train.md", ""),
    ("train.md", "Without labels"),
    ("train.md", "Classifiers"),
}


# The player started by `vidkin open` outlives the command.
@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
@pytest.mark.documentation
@pytest.mark.parametrize(
    "key",
    [pytest.param(key, marks=pytest.mark.slow) if key in LONG else key for key in SECTIONS],
    ids=[": ".join(key) for key in SECTIONS],
)
def test_every_line_runs(key: tuple[str, str], home: Path) -> None:
    for prepare in NEEDS.get(key, ()):
        prepare(home)
    names: dict[str, object] = {}
    for block in SECTIONS[key]:
        if block.language == "python":
            exec(compile(block.text, block.page, "exec"), names)
        else:
            for line in block.lines:
                execute(line, home)


def test_prepared_sections_exist() -> None:
    assert {*NEEDS, *LONG} <= set(SECTIONS)


def test_pages_may_use_other_packages() -> None:
    """Earlier tests of vidkin may have replaced these packages with a stand-in."""
    assert research_hint() == ""
    assert "images" in run("benchmark", "--help").out


def test_every_block_has_a_language_that_is_checked() -> None:
    assert {block.language for block in BLOCKS} <= {"sh", "python", "json", "toml", "text"}
    stale = [
        (block.page, mark)
        for block in BLOCKS
        for mark in block.excuses
        if mark and not any(mark in line for line in block.text.splitlines())
    ]
    assert stale == []


def test_settings_and_labels_are_accepted_by_their_readers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    texts = defaultdict(list)
    for block in BLOCKS:
        if block.language in ("json", "toml"):
            texts[block.page, block.language].append(block.text)
    (shots,), (commands,) = texts["shots.md", "toml"], texts["start.md", "toml"]
    monkeypatch.setenv("VIDKIN_CONFIG", str(tmp_path / "config.toml"))
    (tmp_path / "config.toml").write_text(shots)
    assert "[default: 0.5" in " ".join(run("shots", "--help").out.split())
    (tmp_path / "config.toml").write_text(commands)
    # An option that the command lacks would be an error.
    for command in ("search", "duplicates"):
        run(command, "--help")
    (entry_points,) = texts["train.md", "toml"]
    assert tomllib.loads(entry_points)["project"]["entry-points"]["vidkin.objectives"]
    (tmp_path / "labels.json").write_text(texts["shots.md", "json"][0])
    (video,) = read_shot_annotations(tmp_path / "labels.json")
    assert [shot.critical for shot in video.shots] == [(150, 210), None]
    (verdicts,) = texts["train.md", "json"]
    fill(tmp_path / "i.vidkin")
    (tmp_path / "i.vidkin" / "review").mkdir()
    (tmp_path / "i.vidkin" / "review" / "labels.json").write_text(verdicts)
    labels = Labels.open(tmp_path / "i.vidkin")
    assert (labels.pairs[0].verdict, labels.cuts[0].frame) == ("same kind", 120)
    assert set(json.loads(verdicts)) == {"pairs", "cuts"}
