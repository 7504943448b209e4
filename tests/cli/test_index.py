"""``vidkin index``, ``info`` and ``remove``."""

from __future__ import annotations

import os
import shutil
from importlib.resources import files
from pathlib import Path

import pytest
from PIL import Image

from tests.cli.conftest import Library, run
from tests.support.videos import encode, pan

pytestmark = pytest.mark.usefixtures("library")


def copied(library: Library, target: Path) -> Path:
    """An index of one's own to change."""
    return Path(shutil.copytree(library.index, target))


def test_a_second_run_reads_nothing(library: Library) -> None:
    again = run("index", library.folder, "--index", library.index)
    header, counts = (line.split() for line in _rows(again.out)[:2])
    assert header == ["added", "unchanged", "moved", "broken", "removed"]
    assert counts == ["0", "4", "0", "0", "0"]
    assert "4 videos" in again.out
    assert again.err == ""


def test_the_environment_names_the_index(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIDKIN_INDEX", str(library.index))
    assert run("info", "-f", "json").json["videos"] == 4


def test_broken_files_are_listed_with_causes_and_the_rest_is_done(library: Library, tmp_path: Path) -> None:
    folder = tmp_path / "some"
    folder.mkdir()
    shutil.copy(library.folder / "rocket.mp4", folder)
    (folder / "empty.mp4").write_bytes(b"")
    (folder / "text [x].mp4").write_text("no video")
    index = tmp_path / "index"
    outcome = run("index", folder, "--index", index, "--workers", "1", "-f", "json", status=1)
    report = outcome.json
    assert report["added"] == 1
    assert [Path(item["path"]).name for item in report["broken"]] == ["empty.mp4", "text [x].mp4"]
    assert all(item["cause"] for item in report["broken"])
    assert report["videos"] == 1
    # They have not changed: the second run says so, and does not fail again.
    again = run("index", folder, "--index", index, "-f", "json").json
    assert [(item["known"], item["cause"]) for item in again["broken"]] == [
        (True, item["cause"]) for item in report["broken"]
    ]
    shown = run("index", folder, "--index", index).out
    for item in report["broken"]:
        assert any(Path(item["path"]).name in line and item["cause"] in line for line in shown.splitlines())


def test_a_folder_without_videos_is_nothing_usable(library: Library, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    (tmp_path / "nothing" / "notes.txt").write_text("hello")
    outcome = run("index", tmp_path / "nothing", "--index", library.index, status=3)
    assert "Error: no videos found; name folders or files with videos" in outcome.err


def test_a_path_that_is_not_there_is_named(library: Library, tmp_path: Path) -> None:
    outcome = run("index", tmp_path / "gone", "--index", library.index, "-f", "json", status=3)
    assert [item["path"] for item in outcome.json["broken"]] == [str(tmp_path / "gone")]


def test_an_index_refuses_another_extractor(library: Library, tmp_path: Path) -> None:
    outcome = run("index", library.folder, "--index", library.index, "--extractor", "classical", status=2)
    assert outcome.out == ""
    assert "was created with extractor frame-encoder-" in outcome.err
    assert outcome.err.startswith("Error: ")
    assert outcome.err.count("\n") == 1


def test_a_new_index_with_a_whitening_is_classical(library: Library, tmp_path: Path) -> None:
    shipped = files("vidkin.features") / "data" / "classical.safetensors"
    (tmp_path / "w.safetensors").write_bytes(shipped.read_bytes())
    index = tmp_path / "index"
    outcome = run("index", library.folder / "rocket.mp4", "--index", index, "--whitening", tmp_path / "w.safetensors")
    assert outcome.err == ""
    facts = run("info", "--index", index, "-f", "json").json
    assert facts["extractor"] == "classical"
    assert Path(facts["whitening"]).name == "w.safetensors"


def test_an_unknown_extractor_is_wrong_usage(library: Library, tmp_path: Path) -> None:
    outcome = run("index", library.folder, "--index", tmp_path / "new", "--extractor", "vhs", status=2)
    assert "'vhs' is not an extractor; choose from classical" in outcome.err
    assert not (tmp_path / "new").exists()


def test_what_is_gone_is_forgotten_on_request(library: Library, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    for name in ("coffee.mp4", "rocket.mp4"):
        shutil.copy(library.folder / name, folder)
    index = tmp_path / "index"
    run("index", folder, "--index", index, "--workers", "1")
    (folder / "rocket.mp4").unlink()
    assert run("index", folder, "--index", index, "-f", "json").json["removed"] == 0
    pruned = run("index", folder, "--index", index, "--prune", "-f", "json").json
    assert (pruned["removed"], pruned["missing"]) == (1, [])
    assert pruned["videos"] == 1


@pytest.mark.thorough
def test_missing_files_are_reported_and_marked_in_the_index(library: Library, tmp_path: Path) -> None:
    folder, index = tmp_path / "mine", copied(library, tmp_path / "index")
    shutil.copytree(library.folder, folder)
    run("index", folder, "--index", index, "--workers", "1")
    (folder / "rocket.mp4").unlink()
    shown = run("index", folder, "--index", index)
    assert "1 indexed file are" not in shown.err
    assert "1 indexed file is no longer in these folders; use --prune to remove it" in shown.err
    assert any("rocket.mp4" in row for row in _rows(shown.out))
    assert [
        Path(item["path"]).name for item in run("index", folder, "--index", index, "-f", "json").json["missing"]
    ] == ["rocket.mp4"]
    query = library.folder / "rocket.mp4"
    found = run("search", query, "--index", index, "--threshold", "0.9", "-f", "json").json["matches"]
    assert {match["path"]: match["missing"] for match in found} == {
        str(folder / "rocket.mp4"): True,
    }
    assert "rocket.mp4 (missing)" in run("search", query, "--index", index).out
    assert "rocket.mp4 (missing)" in run("info", "--videos", "--index", index).out
    assert run("info", "--index", index, "-f", "json").json["missing"] == 1
    assert run("doctor", "--index", index, "-f", "json").json["index"]["missing"] == 1
    shutil.rmtree(folder)
    folder.mkdir()
    empty = run("index", folder, "--index", index, status=3)
    assert "Error: no videos found, and those of the index are gone; if they are on a drive, connect it" in empty.err
    assert "missing files" in run("info", "--index", index).out


def test_what_is_left_out_is_listed_on_request(library: Library, tmp_path: Path) -> None:
    folder, index = tmp_path / "some", copied(library, tmp_path / "index")
    (folder / "proxies").mkdir(parents=True)
    shutil.copy(library.folder / "rocket.mp4", folder)
    shutil.copy(library.folder / "rocket.mp4", folder / "proxies")
    (folder / "notes.txt").write_text("hello")
    # Its files are not in the index yet: a link to one that is adds nothing.
    (folder / "link").symlink_to(shutil.copytree(library.folder, tmp_path / "elsewhere"))
    shown = run("index", folder, "--index", index, "--exclude", "proxies/", "--list-skipped", "--workers", "1")
    assert "excluded by proxies/" in shown.out
    assert "not a video file extension" in shown.out
    shown = run("index", folder, "--index", index)  # the pattern is remembered
    assert "1 link to a folder was not followed; use --follow-links to follow it" in shown.err
    words = ("index", folder, "--index", index, "--workers", "1", "-f", "json")
    report = run(*words, "--exclude", "*.mkv", "--list-skipped").json
    assert [Path(item["path"]).name for item in report["skipped"]] == ["link", "notes.txt", "proxies"]
    report = run(*words, "--no-exclude", "--follow-links").json
    assert (report["added"], report["skipped"]) == (5, 1)
    listed = run("info", "--index", index, "--videos", "-f", "json").json["files"]
    added = [os.path.relpath(item["path"], folder) for item in listed]
    assert {*(f"link/{name}" for name in library.names), "proxies/rocket.mp4"} <= {*added}


def test_bins_are_left_out_until_they_are_included_which_is_remembered(library: Library, tmp_path: Path) -> None:
    folder, index = tmp_path / "nas", copied(library, tmp_path / "index")
    for name in ("rocket.mp4", "#recycle/deleted.mp4", "@eaDir/rocket.mp4/preview.mp4"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library.folder / "rocket.mp4", folder / name)
    words = ("index", folder, "--index", index, "--workers", "1")
    shown = run(*words)
    assert (
        "2 folders of deleted files, snapshots or previews were skipped; use --include-bins to add them." in shown.err
    )
    skipped = run(*words, "--list-skipped", "-f", "json").json["skipped"]
    assert {(Path(item["path"]).name, item["cause"]) for item in skipped} == {
        ("#recycle", "a folder of deleted files, snapshots or previews (--include-bins)"),
        ("@eaDir", "a folder of deleted files, snapshots or previews (--include-bins)"),
    }
    added = run(*words, "--include-bins", "-f", "json").json["added"]
    assert added == 2
    assert run(*words, "-f", "json").json["unchanged"] == 3
    assert len(run(*words, "--no-include-bins", "-f", "json").json["excluded"]) == 2


def test_a_share_that_is_not_mounted_is_not_pruned(library: Library, tmp_path: Path) -> None:
    share, index = tmp_path / "share", tmp_path / "index"
    share.mkdir()
    for name in ("coffee.mp4", "rocket.mp4"):
        shutil.copy(library.folder / name, share)
    run("index", share, "--index", index, "--workers", "1")
    share.rename(tmp_path / "unmounted")
    share.mkdir()
    words = ("index", share, "--index", index, "--prune")
    refused = run(*words, status=1)
    assert refused.err.count("Error: ") == 1
    assert f"Error: nothing was pruned: {share} no longer contains videos" in refused.err
    assert "--prune removes them" not in refused.err
    report = run(*words, "-f", "json", status=1).json
    assert report["prune_refused"].startswith(f"nothing was pruned: {share} no longer contains videos")
    assert (report["removed"], len(report["missing"]), report["videos"]) == (0, 2, 2)
    share.rmdir()
    assert f"nothing was pruned: {share} is missing" in run(*words, status=1).err
    report = run("index", share, "--index", index, "--prune-anyway", "-f", "json").json
    assert (report["removed"], report["broken"], report["prune_refused"], report["videos"]) == (2, [], "", 0)


def test_names_that_are_not_unicode_go_through(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.mp4"))
    os.rename(encode(tmp_path / "plain.mp4", pan("coffee", 20)), path)
    assert run("index", path, "-f", "json").json["added"] == 1
    (found,) = run("info", "--videos", "-f", "json").json["files"]
    assert found["path"] == str(path)
    assert (Path.cwd() / "collection.vidkin" / "collection.json").is_file()  # the default place
    assert "caf�.mp4" in run("info", "--videos").out


def test_info_says_what_made_the_index(library: Library) -> None:
    found = run("info", "--index", library.index, "-f", "json", "--videos").json
    assert (found["videos"], found["broken"], found["extractor"]) == (4, 0, "vidkin")
    assert found["seconds"] == pytest.approx(12 + 12 + 8 + 8, abs=0.1)
    names = [os.path.relpath(item["path"], library.folder) for item in found["files"]]
    assert names == list(library.names)
    shown = run("info", "--index", library.index, "--videos").out
    assert "día 山 [2].mp4" in shown
    assert "192x128" in shown
    assert "0:40.0" in shown


def test_damage_is_in_the_report_and_in_info(library: Library, tmp_path: Path) -> None:
    folder, index = tmp_path / "some", tmp_path / "index"
    folder.mkdir()
    path = folder / "half.webm"
    encode(path, pan("coffee", 100, width=96, height=64), codec="libvpx")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    shutil.copy(library.folder / "rocket.mp4", folder)
    first = run("index", folder, "--index", index, "--workers", "1", "-f", "json")
    assert first.json["added"] == 2
    causes = {Path(item["path"]).name: item["cause"] for item in first.json["damaged"]}
    assert [*causes] == ["half.webm"]
    assert causes["half.webm"].startswith("the file is cut off: ")
    assert f"Warning: {path}: the file is cut off: " in first.err
    assert run("info", "--index", index, "-f", "json").json["damaged"] == 1
    shown = run("info", "--index", index, "--videos").out
    assert any("half.webm" in line and causes["half.webm"] in line for line in shown.splitlines())


def test_remove_forgets_and_touches_no_file(library: Library, tmp_path: Path) -> None:
    index = copied(library, tmp_path / "index")
    assert run("remove", library.folder / "sub folder", "--index", index).out.endswith("1 video removed, 3 left\n")
    found = run("index", library.folder, "--index", index, "-f", "json").json
    assert (found["added"], found["videos"]) == (0, 3)  # its folder does not bring it back
    (tmp_path / "bad.mp4").write_text("no video")
    run("index", tmp_path / "bad.mp4", "--index", index, "--workers", "1", status=3)
    words = (tmp_path / "bad.mp4", library.folder / "rocket.mp4", "--index", index)
    assert run("remove", *words).out.endswith("1 video and 1 broken file removed, 2 left\n")
    assert (library.folder / "sub folder" / "día 山 [2].mp4").is_file()
    outcome = run("remove", tmp_path / "unknown.mp4", "--index", index, status=3)
    assert "unknown.mp4" in outcome.err


@pytest.mark.parametrize("command", [("search", __file__), ("duplicates",), ("info",), ("remove", "a.mp4")])
def test_a_missing_index_says_how_to_make_one(command: tuple[str, ...]) -> None:
    outcome = run(*command, status=3)
    assert "there is no index at" in outcome.err
    assert "vidkin index" in outcome.err
    assert not (Path.cwd() / "collection.vidkin").exists()


def _rows(text: str) -> list[str]:
    """Lines of tables without their frames."""
    cleaned = ("".join(" " if char in "│┃" else char for char in line) for line in text.splitlines())
    return [line for line in cleaned if line.strip() and not set(line) & set("┏┡┗└")]


def test_a_wrong_name_makes_no_index(tmp_path: Path) -> None:
    outcome = run("index", tmp_path / "Vidoes", "--index", tmp_path / "i.vidkin", status=3)
    assert "Vidoes: there is no such file or folder; name a folder with videos" in outcome.err
    assert not (tmp_path / "i.vidkin").exists()


def test_photographs_are_counted_apart_from_videos(library: Library, tmp_path: Path) -> None:
    shutil.copy(library.folder / "rocket.mp4", tmp_path)
    Image.fromarray(next(pan("coffee", 1))).save(tmp_path / "photo.jpg")
    shown = run("index", tmp_path, "--images", "--workers", "1")
    assert shown.out.splitlines()[-1] == "collection.vidkin: 1 video and 1 photograph"
    found = run("info", "-f", "json").json
    assert (found["videos"], found["photographs"]) == (1, 1)
    assert "1 video and 1 photograph removed, 0 left" in run("remove", tmp_path).out
