"""``vidkin duplicates`` to act on: a plan, ``vidkin apply``, ``--undo``, a page with pictures, ``vidkin decisions``."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Library, run
from tests.support.videos import encode, pan
from vidkin.cli.console import Meter
from vidkin.cli.duplicates import SearchProgress
from vidkin.files import DuplicatePlan, FileState, PlannedGroup, hold_removals, write_plan
from vidkin.index import DuplicateGroup, DuplicateMember, FoundGroup


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A library of its own, whose files may be moved."""
    root = tmp_path_factory.mktemp("ówn")
    folder = root / "videos"
    folder.mkdir()
    frames = list(pan("coffee", 60, width=320, height=240))
    encode(folder / "coffee.mp4", frames, rate=5)
    encode(folder / "coffee small [1].mp4", frames, rate=5, options={"crf": "34"})
    encode(folder / "coffee clip.mp4", frames[20:45], rate=5)
    encode(folder / "rocket.mp4", pan("rocket", 40, width=320, height=240), rate=5)
    run("index", folder, "--index", root / "i", "--workers", "1")
    return Library(folder, root / "i", folder / "coffee clip.mp4")


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(folder.iterdir())}


def without_proofs(own: Library, folder: Path) -> Path:
    """A copy of the index that remembers nothing: what is proven decides before any preference."""
    index = Path(shutil.copytree(own.index, folder / "copy of the index"))
    (index / "comparisons.json").unlink(missing_ok=True)
    return index


def test_folders_are_compared_without_an_index(own: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIDKIN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "films"
    folder.mkdir()
    for name in ("coffee.mp4", "rocket.mp4"):
        shutil.copy2(own.folder / name, folder)
    assert run("duplicates", folder, "-f", "json").json["groups"] == []
    shutil.copy2(own.folder / "coffee small [1].mp4", folder)
    (group,) = run("duplicates", "films", folder, "-f", "json").json["groups"]
    assert {Path(one["path"]).name for one in group["members"]} == {"coffee.mp4", "coffee small [1].mp4"}
    assert len(list((tmp_path / "cache").glob("*/*.vidkin"))) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "films"]

    shown = run("duplicates", folder, "--plan", tmp_path / "plan.json")
    (index,) = (tmp_path / "cache").glob("*/*.vidkin")
    words = " ".join(shown.err.split())
    assert f"`vidkin apply {tmp_path / 'plan.json'} --index {index}`" in words
    assert f"`vidkin decisions --not-a-match A B --index {index}`" in words
    (folder / "coffee small [1].mp4").unlink()
    assert run("duplicates", folder, "-f", "json").json["groups"] == []


def test_folders_are_compared_but_for_files_that_cannot_be_read(own: Library, tmp_path: Path) -> None:
    for name in ("coffee.mp4", "coffee small [1].mp4"):
        shutil.copy2(own.folder / name, tmp_path)
    (tmp_path / "broken.mp4").write_bytes(b"no video")
    shown = run("duplicates", tmp_path, "-f", "plain", status=1)
    assert len(shown.out.splitlines()) == 2
    assert "broken.mp4: " in shown.err
    (tmp_path / "empty").mkdir()
    assert "no videos found" in run("duplicates", tmp_path / "empty", status=3).err
    assert "no such file or folder" in run("duplicates", tmp_path / "none", status=3).err
    assert "exclude each other" in run("duplicates", tmp_path, "--index", own.index, status=2).err


def test_a_plan_is_applied_and_undone(own: Library, tmp_path: Path) -> None:
    before = contents(own.folder)
    plan, away = tmp_path / "plan.json", tmp_path / "away"
    shown = run("duplicates", "--index", own.index, "--plan", plan)
    assert "plan.json: 1 file to remove" in shown.err
    assert f"carry it out: `vidkin apply {plan} --index " in " ".join(shown.err.split())
    planned = json.loads(plan.read_text())
    assert [Path(item["path"]).name for item in planned["groups"][0]["remove"]] == ["coffee small [1].mp4"]
    assert Path(planned["groups"][0]["keep"]["path"]).name == "coffee.mp4"
    dry = run("apply", plan, "--move-to", away, "--dry-run").out
    assert f"coffee small [1].mp4: would be moved to {away}" in dry
    assert f"1 file would be moved to {away} (" in dry
    assert contents(own.folder) == before
    assert "1 file would be moved to the trash (" in run("apply", plan, "--dry-run").out
    moved = run("apply", plan, "--move-to", away)
    assert f"1 file moved to {away} (" in moved.out
    assert f"`vidkin apply {plan} --undo` restores the files" in moved.err
    run("apply", plan, "--undo")
    done = run("apply", plan, "--move-to", away, "-f", "json").json
    assert [item["outcome"] for item in done["files"]] == ["removed"]
    assert "coffee small [1].mp4" not in contents(own.folder)
    again = run("apply", plan, "--move-to", away, status=1).out
    assert f"skipped, it was already moved to {away}" in again
    written = plan.read_bytes()
    refused = " ".join(run("duplicates", "--index", own.index, "--plan", plan, status=2).err.split())
    assert "is a plan that moved 1 file, and `vidkin apply --undo` needs it to restore them" in refused
    assert plan.read_bytes() == written
    with hold_removals():
        busy = " ".join(run("apply", plan, "--undo", status=3).err.split())
    assert "another `vidkin apply` or web page of yours is moving or restoring files; wait for" in busy
    planned = run("apply", plan, "--undo", "--dry-run", "-f", "json").json["files"]
    assert [(item["outcome"], item["size"]) for item in planned] == [("planned", done["files"][0]["size"])]
    undone = run("apply", plan, "--undo").out
    assert f"coffee small [1].mp4: restored from {away}" in undone
    assert "1 file restored" in undone
    assert contents(own.folder) == before
    assert "0 files restored" in run("apply", plan, "--undo").out


def test_the_index_forgets_what_a_plan_moved_and_finds_it_again(own: Library, tmp_path: Path) -> None:
    index, plan = Path(shutil.copytree(own.index, tmp_path / "index")), tmp_path / "plan.json"
    run("duplicates", "--index", index, "--plan", plan)
    run("apply", plan, "--index", index, "--move-to", tmp_path / "away")
    words = ("index", own.folder, "--index", index, "--workers", "1", "-f", "json")
    try:
        report = run(*words).json
        assert (report["removed"], report["missing"]) == (1, [])
    finally:
        run("apply", plan, "--undo")
    assert run(*words).json["added"] == 1


def test_an_empty_plan_says_that_nothing_is_to_be_done(own: Library, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    shown = run("duplicates", "--index", own.index, "-t", "1", "--plan", plan)
    assert f"Wrote {plan}: nothing to do" in shown.err
    assert "carry it out" not in shown.err
    assert "plan.json: nothing is to be done, the plan names no file" in run("apply", plan).out


def test_only_the_folders_that_are_named_are_compared(own: Library, tmp_path: Path) -> None:
    words = ("duplicates", "--index", own.index, "-f", "json")
    assert run(*words, "--only", own.folder).json["groups"] == run(*words).json["groups"] != []
    (tmp_path / "new").mkdir()
    assert run(*words, "--across", own.folder, tmp_path / "new").json["groups"] == []
    said = run(*words, "--incoming", tmp_path / "new")
    assert said.json["groups"] == []
    assert "the index has no videos in" in " ".join(said.err.split())
    # All of the index is new: there is no library to compare it with.
    assert run(*words, "--incoming", own.folder).json["groups"] == []
    both = run(*words, "--incoming", tmp_path, "--across", own.folder, tmp_path, status=2).json["error"]["message"]
    assert both == "across and incoming are mutually exclusive; choose one of them"


def test_a_person_may_configure_folders_and_rules(
    own: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.toml"
    monkeypatch.setenv("VIDKIN_CONFIG", str(config))
    words = ("duplicates", "--index", without_proofs(own, tmp_path), "-f", "json")
    config.write_text(f'[duplicates]\nprefer = ["outside:{own.folder}", "smallest"]\nonly = "{own.folder}"\n')
    assert run(*words).json["groups"][0]["reason"] == "smallest file"
    config.write_text(f'[duplicates]\nacross = ["{own.folder}", "{tmp_path}"]\n')
    assert run(*words).json["groups"] == []
    config.write_text(f'[duplicates]\nacross = ["{own.folder}"]\n')
    assert "across in [duplicates] must be a list of 2 values" in run(*words, status=2).json["error"]["message"]


def test_preferences_apply_in_their_order(own: Library, tmp_path: Path) -> None:
    (group,) = run(
        *("duplicates", "--index", without_proofs(own, tmp_path), "-f", "json", "--prefer", f"outside:{own.folder}"),
        *("--prefer", "longest,smallest"),
    ).json["groups"]
    best = next(member for member in group["members"] if member["best"])
    assert (Path(best["path"]).name, group["reason"]) == ("coffee small [1].mp4", "smallest file")


def test_subtitles_go_and_come_back_with_their_video(own: Library, tmp_path: Path) -> None:
    subtitles = own.folder / "coffee small [1].en.srt"
    subtitles.write_text("1\n00:00:01,000 --> 00:00:02,000\ncoffee\n")
    try:
        run("index", own.folder, "--index", own.index, "--workers", "1")
        before = contents(own.folder)
        plan, away = tmp_path / "plan.json", tmp_path / "away"
        shown = run("duplicates", "--index", own.index, "--plan", plan)
        assert "plan.json: 1 file to remove" in shown.err
        assert "and 1 companion file" in " ".join(shown.err.split())
        plain = run("duplicates", "--index", own.index, "--format", "plain").out
        assert "with coffee small [1].en.srt" in plain
        (group,) = run("duplicates", "--index", own.index, "-f", "json").json["groups"]
        assert [member["companions"] for member in group["members"]] == [[], [str(subtitles)]]
        said = " ".join(run("apply", plan, "--move-to", away).out.split())
        assert f"{subtitles.name}: moved to {away}" in said
        assert not subtitles.exists()
        run("apply", plan, "--undo")
        assert contents(own.folder) == before
    finally:
        subtitles.unlink()


@pytest.mark.process
def test_a_reader_of_a_table_that_stops_early_causes_no_error(own: Library) -> None:
    words = [sys.executable, "-m", "vidkin", "duplicates", "--index", str(own.index), "-f", "tsv"]
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, text=True)
    finally:
        os.close(writing)
    assert "cannot be written" not in done.stderr


def test_what_a_plan_claims_is_proven_before_a_file_moves(own: Library, tmp_path: Path) -> None:
    before = contents(own.folder)
    keep, rocket = (FileState.of(os.fspath(own.folder / name)) for name in ("coffee.mp4", "rocket.mp4"))
    claimed = replace(rocket, accepted=("it shows something else", "its sound is missing"))
    write_plan(DuplicatePlan((PlannedGroup(keep, "best", (claimed,)),)), tmp_path / "forged.json")
    said = run("apply", tmp_path / "forged.json", "--move-to", tmp_path / "away", status=1).out
    assert "rocket.mp4: skipped, " in said
    assert "0 files moved" in said
    assert contents(own.folder) == before


@pytest.mark.thorough
def test_a_pair_that_is_marked_as_duplicates_may_lose_frames_and_no_other(own: Library, tmp_path: Path) -> None:
    before = contents(own.folder)
    index, plan, away = Path(shutil.copytree(own.index, tmp_path / "index")), tmp_path / "plan.json", tmp_path / "away"
    keep, clip = (own.folder / name for name in ("coffee.mp4", "rocket.mp4"))
    states = [FileState.of(os.fspath(path)) for path in (keep, clip)]
    write_plan(DuplicatePlan((PlannedGroup(states[0], "best", (states[1],)),)), plan)
    assert "0 files moved" in run("apply", plan, "--index", index, "--move-to", away, status=1).out
    run("decisions", "--is-a-match", keep, clip, "--index", index)
    assert "1 file moved" in run("apply", plan, "--index", index, "--move-to", away).out
    run("apply", plan, "--undo")
    assert contents(own.folder) == before


@pytest.mark.parametrize(
    "change",
    ['"size": 1e999', r'"path": "/a\u0000b"', r'"path": "/a\ud800b"'],
    ids=["size", "null", "surrogate"],
)
def test_a_hostile_plan_costs_one_line(tmp_path: Path, change: str) -> None:
    file = (
        f'{{"path": "/a", "size": 1, "modified": "1", "content": "", "folder": "/", "folder_number": "1:2", {change}}}'
    )
    (tmp_path / "p.json").write_text(f'{{"vidkin_plan": 2, "groups": [{{"keep": {file}, "remove": [{file}]}}]}}')
    for words in (["--dry-run"], ["--move-to", tmp_path / "away"]):
        said = run("apply", tmp_path / "p.json", *words, status=2).err
        assert "must be a plan from" in said
        assert "Traceback" not in said


def test_wrong_uses_of_apply(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text("{}")
    outcome = run("apply", tmp_path / "p.json", status=2)
    assert "must be a plan from `vidkin duplicates --plan`" in outcome.err
    assert "'hard', 'symbolic'" in run("apply", tmp_path / "p.json", "--link", "soft", status=2).err
    refused = run("apply", tmp_path / "p.json", "--protect", tmp_path / "none", status=2).err
    assert "does not exist" in " ".join(refused.split())
    outcome = run("apply", tmp_path / "p.json", "--undo", status=3)
    assert "there is no such log: nothing was done with this plan" in outcome.err


@pytest.mark.thorough
def test_parts_and_wrong_preferences(own: Library) -> None:
    whole = run("duplicates", "--index", own.index, "-f", "json").json["groups"]
    assert [len(group["members"]) for group in whole] == [2]
    parts = run("duplicates", "--index", own.index, "--parts", "-f", "json").json["groups"]
    (excerpt,) = [item for item in parts[0]["members"] if item["relation"] == "excerpt"]
    assert Path(excerpt["path"]).name == "coffee clip.mp4"
    assert (excerpt["start"], excerpt["end"]) == (pytest.approx(4, abs=0.4), pytest.approx(9, abs=0.4))
    assert "excerpt of " in run("duplicates", "--index", own.index, "--parts").out
    outcome = run("duplicates", "--index", own.index, "--prefer", "prettiest", status=2)
    assert "prefer must be one of picture, frame-rate, dynamic-range" in " ".join(outcome.err.split())
    assert "there is no folder" in outcome.err


def test_what_may_be_lost_is_said_with_a_plan_and_by_kind(own: Library, tmp_path: Path) -> None:
    words = ("duplicates", "--index", own.index)
    said = " ".join(run(*words, "--accept", "sound", status=2).err.split())
    assert "--accept needs --plan: only a proof finds what a kept file lacks" in said
    for kind, cause in (
        ("taste", "accept may only contain resolution, quality, borders, frame-rate"),
        ("sound,picture", "accept must not contain 'picture', which is lost footage; mark a pair"),
    ):
        refused = run(*words, "--plan", tmp_path / "plan.json", "--accept", kind, status=2).err
        assert cause in " ".join(refused.split())
    assert not (tmp_path / "plan.json").exists()


@pytest.mark.thorough
def test_a_plan_is_made_with_proofs(own: Library, tmp_path: Path) -> None:
    """The source, with more data for as many pixels, goes for a small copy only if that is preferred and accepted."""
    index = without_proofs(own, tmp_path)
    said = run("duplicates", "--index", index)
    assert "may be removable" in said.out
    assert "--plan FILE decodes the copies to prove" in " ".join(said.err.split())
    words = ("duplicates", "--index", index, "--plan", tmp_path / "plan.json", "--prefer", "smallest", "-f", "json")
    (group,) = run(*words).json["groups"]
    assert group["reason"] == "contains the most other files"
    assert [(Path(item["path"]).name, item["is_proven"]) for item in group["members"]] == [
        ("coffee.mp4", False),
        ("coffee small [1].mp4", True),
    ]
    (group,) = run(*words, "--accept", "quality").json["groups"]
    assert group["reason"] == "smallest file"
    (planned,) = json.loads((tmp_path / "plan.json").read_text())["groups"]
    assert Path(planned["remove"][0]["path"]).name == "coffee.mp4"
    assert len(planned["remove"][0]["accepted"]) == 1
    # The proof that is made again finds what was accepted, and nothing else.
    before = contents(own.folder)
    assert "1 file moved" in run("apply", tmp_path / "plan.json", "--move-to", tmp_path / "away").out
    run("apply", tmp_path / "plan.json", "--undo")
    assert contents(own.folder) == before
    assert "can be removed without loss" in run("duplicates", "--index", index).out


def test_without_a_terminal_a_line_now_and_then_says_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    passed = [0.0]
    monkeypatch.setattr("vidkin.cli.duplicates.time.monotonic", lambda: passed[-1])
    progress = SearchProgress(Meter())
    for seconds, done in ((0.0, 10), (29.0, 12), (40.0, 30), (45.0, 35), (80.0, 50)):
        passed.append(seconds)
        progress.groups = {1, 2, 3} if done == 50 else set()
        progress.update(done, 90)
    assert capsys.readouterr().err.splitlines() == [
        "comparing: 30 of 90, 0.5/s, 0:02:00 left",
        "comparing: 50 of 90, 0.5/s, 0:01:20 left, 3 groups",
    ]


def test_a_terminal_names_the_first_groups_while_pairs_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    class Shown(Meter):
        is_shown = True

    def group(*names: str) -> DuplicateGroup:
        facts = {"score": 1.0, "width": 2, "height": 2, "duration": 1.0, "size": 1}
        return DuplicateGroup(
            tuple(DuplicateMember(f"/v/{name}", best=not at, **facts) for at, name in enumerate(names))
        )

    progress = SearchProgress(Shown())
    progress.add(FoundGroup(1, 1, False, group("a.mp4", "b.mp4")))
    progress.add(FoundGroup(1, 2, False, group("a.mp4", "b.mp4", "c.mp4")))  # named already
    progress.add(FoundGroup(2, 3, False, group(*(f"{number}\n.mp4" for number in range(6)))))
    progress.add(FoundGroup(2, 4, True, None))
    assert progress.groups == {1}
    assert capsys.readouterr().err.splitlines() == [
        "found: a.mp4, b.mp4",
        "found: 0\N{REPLACEMENT CHARACTER}.mp4, 1\N{REPLACEMENT CHARACTER}.mp4, 2\N{REPLACEMENT CHARACTER}.mp4, "
        "3\N{REPLACEMENT CHARACTER}.mp4 and 2 more",
    ]
    for number in range(3, 40):
        progress.add(FoundGroup(number, number + 2, False, group("x", f"{number}")))
    lines = capsys.readouterr().err.splitlines()
    assert (len(lines), lines[-1]) == (19, "and more; all are listed at the end")
    # Without a terminal nothing is named, and what is final is in the table.
    quiet = SearchProgress(Meter())
    quiet.add(FoundGroup(1, 1, False, group("a.mp4", "b.mp4")))
    progress.add(FoundGroup(50, 60, True, group("y", "z")))
    assert (quiet.groups, capsys.readouterr().err) == ({1}, "")


def test_a_page_has_the_pictures_of_all_copies(own: Library, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert run("duplicates", "--index", own.index, "-o", page).err.startswith(f"Wrote {page}\n")
    text = page.read_text(encoding="utf-8")
    assert text.count('src="data:image/jpeg;base64,') == 6
    assert "coffee small [1].mp4" in text
    assert not re.search(r'(src|href)="(?!data:)', text)  # nothing is loaded from elsewhere
    outcome = run("duplicates", "--index", own.index, "-o", tmp_path / "none" / "page.html", status=2)
    assert "there is no folder" in outcome.err


def test_decisions_are_listed_and_undone(own: Library, tmp_path: Path) -> None:
    index = Path(shutil.copytree(own.index, tmp_path / "index"))
    pair = (own.folder / "coffee.mp4", own.folder / "coffee small [1].mp4")
    assert "No decisions" in run("decisions", "--index", index).out
    run("decisions", "--index", index, "--not-a-match", *pair)
    assert run("duplicates", "--index", index, "-f", "json").json["groups"] == []
    shown = run("decisions", "--index", index).out
    assert "not duplicates" in shown
    assert all(path.name in shown for path in pair)
    (decision,) = run("decisions", "--index", index, "-f", "json").json["decisions"]
    assert decision["verdict"] == "not a match"
    assert "decision undone" in run("decisions", "--index", index, "--undo", *pair).out
    assert len(run("duplicates", "--index", index, "-f", "json").json["groups"]) == 1
    outcome = run("decisions", "--index", index, "--undo", *pair, status=2)
    assert "there is no decision about these two videos" in outcome.err


@pytest.mark.large
def test_a_copy_with_borders_is_planned_and_one_that_shows_more_of_the_picture_is_not(tmp_path: Path) -> None:
    """Real files: a film, the film inside a shaded border of another shape, and the take that the film was cut from."""
    folder, kept = tmp_path / "videos", tmp_path / "videos" / "kept"
    kept.mkdir(parents=True)
    wide = list(pan("coffee", 64, width=400, height=300))
    film = [frame[30:270, 40:360] for frame in wide]
    shade = 110 - 20 * np.hypot(*(np.mgrid[:384, :384] - 192)) / 272
    page = np.stack([shade, 0.9 * shade, 1.2 * shade], axis=-1).astype(np.uint8)

    def bordered(frame: np.ndarray) -> np.ndarray:
        made = page.copy()
        made[72:312, 32:352] = frame
        return made

    good = {"preset": "medium", "crf": "18"}
    encode(kept / "film.mp4", film, rate=8, options=good)
    encode(folder / "wide.mp4", wide, rate=8, options=good)
    encode(folder / "bordered.mp4", map(bordered, film), rate=8, options={"preset": "medium", "crf": "26"})
    index = tmp_path / "i.vidkin"
    run("index", folder, "--index", index, "--no-sound", "--workers", "1")
    words = ("duplicates", "--index", index, "--prefer", kept, "--plan", tmp_path / "plan.json", "-f", "json")
    (group,) = run(*words).json["groups"]
    found = {Path(member["path"]).stem: member for member in group["members"]}
    assert found["film"]["best"]
    kinds = {name: {each["kind"] for each in member["differences"]} for name, member in found.items()}
    assert "borders added" in kinds["bordered"]
    assert (found["bordered"]["doubt"], found["bordered"]["is_spare"]) == ("", True)
    assert found["wide"]["doubt"] == "more of the scene all around"
    assert not found["wide"]["is_spare"]
    (planned,) = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))["groups"]
    assert [Path(file["path"]).name for file in planned["remove"]] == ["bordered.mp4"]
