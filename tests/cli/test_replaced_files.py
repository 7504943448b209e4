"""Folders of strangers: each file of an index, a model and an experiments folder replaced by something else.

Every command and every page answers soon, without a traceback and without what a link leads to.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from tests.conftest import missing_part
from tests.support.sounds import tune, write_sounds
from tests.support.stored_runs import write_benchmark, write_training
from tests.support.strangers import REPLACEMENTS, replaced, within
from tests.support.videos import encode, pan
from vidkin.cli.app import app
from vidkin.errors import VidkinError
from vidkin.index import Index
from vidkin.web import Settings, create_app

pytestmark = [
    pytest.mark.hostile,
    pytest.mark.skipif(sys.platform == "win32", reason="there are no pipes among the files of Windows"),
]

# On a machine that does nothing else a third of it is enough; a command that waits for a pipe never ends.
SECONDS = 60.0
HOST = "http://127.0.0.1:8800"
PAGES = (
    *("/", "/search?video=1", "/map", "/duplicates", "/recurring", "/shots", "/review", "/experiments", "/removals"),
    *("/api/videos", "/api/lists", "/api/lists.json", "/api/lists.csv", "/api/jobs", "/api/experiments", "/api/map"),
    *("/api/review", "/api/review/pairs", "/api/review/history", "/api/recurring", "/api/duplicates"),
    *("/api/duplicates/removals", "/api/duplicates.csv", "/api/duplicates/plan.json", "/api/duplicates/spare"),
    *("/videos/1", "/videos/1/thumbnail", "/videos/1/shots", "/api/videos/1/shots", "/api/videos/1/neighbors"),
)


def ask(*words: object) -> None:
    """Run a command; it may fail, but says why."""
    with within(SECONDS):
        result = CliRunner().invoke(app, [str(word) for word in words])
    said = f"{result.stdout}\n{result.stderr}"
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise AssertionError(f"{words}: {result.exception!r}") from result.exception
    assert result.exit_code in (0, 1, 2, 3), said
    for word in ("Traceback", "internal error", "root:x:"):
        assert word not in said, (words, said)


def visit(index: Path, **settings: object) -> None:
    """Ask for all pages; a server that cannot open the index says so at once."""
    with within(SECONDS * len(PAGES)):
        try:
            opened = create_app(index, Settings(**settings))  # type: ignore[arg-type]
        except VidkinError:
            return
        with TestClient(opened, base_url=HOST) as client:
            for page in PAGES:
                with within(SECONDS):
                    answer = client.get(page)
                assert answer.status_code < 500, (page, answer.status_code, answer.text[:500])
                assert b"root:x:" not in answer.content, page


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with all that people and programs leave in one."""
    return make_index(tmp_path_factory.mktemp("stranger"), "--extractor", "classical")


@pytest.fixture(scope="module")
def usual_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with the default extractor."""
    return make_index(tmp_path_factory.mktemp("usual"))


def make_index(root: Path, *words: str) -> Path:
    (root / "videos").mkdir()
    encode(root / "videos" / "coffee.mp4", pan("coffee", 60))
    encode(root / "videos" / "copy.mp4", pan("coffee", 60, width=128, height=96), options={"crf": "32"})
    write_sounds(root / "videos" / "tone.mp4", [tune(8, seed=1)], pictures="rocket")
    encode(root / "clip.mp4", list(pan("coffee", 60))[20:50])
    place = root / "c.vidkin"
    ask("index", root / "videos", "--index", place, "--workers", 1, *words, "--sound")
    ask("duplicates", "--index", place, "--plan", root / "plan.json")
    ask("recurring", "--index", place)
    ask("decisions", "--index", place, "--not-a-match", root / "videos" / "coffee.mp4", root / "videos" / "tone.mp4")
    with TestClient(create_app(place), base_url=HOST) as client:
        assert client.post("/api/lists", json={"name": "mine", "add": [1]}).status_code == 200
        assert client.get("/videos/1/thumbnail").status_code == 200
        assert client.post("/api/videos/1/neighbors").status_code == 200
        judged = client.post("/api/review/pairs", json={"first": 1, "second": 2, "verdict": "same"})
        assert judged.status_code == 200, judged.text
    (place / "config.toml").write_text("[search]\nlimit = 3\n", encoding="utf-8")
    with Index.open(place, read_only=True) as opened:
        assert len(opened) == 3
    return place


def files_in(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.endswith(".kept"):
            yield path


def one_of_each(index: Path) -> Iterator[Path]:
    """Of the files that are alike, one."""
    seen = set()
    for path in files_in(index):
        part = path.relative_to(index).parts
        kind = (*part[:2], path.suffix) if len(part) > 1 else part
        if part[0] in ("features", "sound", "web-cache"):
            kind = (part[0], path.suffix)
        if kind not in seen:
            seen.add(kind)
            yield path


def ask_all(index: Path) -> None:
    ask("info", "--index", index)
    ask("search", index.parent / "clip.mp4", "--index", index)
    ask("duplicates", "--index", index)
    ask("decisions", "--index", index)


def test_a_pipe_for_a_file_of_an_index_is_not_waited_for(index: Path) -> None:
    for path in one_of_each(index):
        with replaced(path, "pipe"):
            ask("info", "--index", index)
            ask("search", index.parent / "clip.mp4", "--index", index)


@pytest.mark.parametrize("kind", [kind for kind in REPLACEMENTS if kind != "sparse"])
def test_a_journal_of_the_list_of_videos_is_a_file(kind: str, index: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(index, tmp_path / "copy.vidkin")
    for ending in ("-journal", "-wal"):
        REPLACEMENTS[kind](copy / f"videos.sqlite{ending}")
        ask_all(copy)
        ask("index", index.parent / "videos", "--index", copy, "--workers", 1)


# Together more than 500 replaced files.
@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("kind", REPLACEMENTS)
@pytest.mark.parametrize("look", [ask_all, visit])
@pytest.mark.parametrize("name", ["index", "usual_index"])
def test_commands_and_pages_answer_whatever_is_in_the_place_of_a_file(
    name: str, look: Callable[[Path], None], kind: str, request: pytest.FixtureRequest
) -> None:
    place = request.getfixturevalue(name)
    for path in files_in(place):
        with replaced(path, kind):
            look(place)


@pytest.mark.parametrize("kind", REPLACEMENTS)
def test_an_experiments_folder_may_hold_anything(kind: str, index: Path, tmp_path: Path) -> None:
    try:
        write_training(tmp_path / "run", [2.0, 1.0], report=True)
    except ImportError as error:
        missing_part(f"{error.name} is not installed")
    (tmp_path / "run" / "rows.png").write_bytes(b"\x89PNG")
    (tmp_path / "run" / ".training.lock").touch()
    write_benchmark(tmp_path / "figures.json")
    opened = create_app(index, Settings(experiments=(tmp_path,)))
    with TestClient(opened, base_url=HOST) as client:
        runs = client.get("/api/experiments").json()
        assert len(runs) == 2
        run = next(run["id"] for run in runs if run["kind"] == "training")
        chosen = "&".join(f"run={each['id']}" for each in runs)
        for path in files_in(tmp_path):
            with replaced(path, kind), within(SECONDS):
                pages = ("/api/experiments", "/experiments", f"/experiments?{chosen}", "/api/videos")
                for page in (*pages, f"/api/experiments/{run}/pictures/rows.png"):
                    answer = client.get(page)
                    assert answer.status_code < 500, (path, page, answer.text[:300])
                    assert b"root:x:" not in answer.content
        assert client.get(f"/api/experiments/{run}/pictures/rows.png").content == b"\x89PNG"


@pytest.mark.parametrize("kind", REPLACEMENTS)
def test_a_model_folder_may_hold_anything(kind: str, index: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from vidkin.models import EncoderConfig, build_model, save_model

    with torch.random.fork_rng():
        model = build_model(EncoderConfig(kind="image", size=32, hidden=24, width=0.5)).eval()
    folder = save_model(model, tmp_path / "model")
    clip = index.parent / "clip.mp4"
    for path in files_in(Path(folder)):
        with replaced(path, kind):
            ask("match", clip, clip, "--model", folder)
            ask("embed", clip, "--model", folder, "-o", tmp_path / "vectors.npz")


def test_a_lock_that_is_a_link_is_neither_followed_nor_emptied(index: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine", encoding="utf-8")
    copy = shutil.copytree(index, tmp_path / "copy.vidkin")
    lock = copy / "writer.lock"
    for make in (lock.symlink_to, lock.hardlink_to):
        lock.unlink(missing_ok=True)
        make(precious)
        result = CliRunner().invoke(app, ["index", str(index.parent / "videos"), "--index", str(copy)])
        assert isinstance(result.exception, SystemExit)
        assert result.exit_code == 3
        assert "writer.lock" in result.stderr.replace("\n", "")
        assert precious.read_text(encoding="utf-8") == "mine"
