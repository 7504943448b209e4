"""Output files are written atomically and never overwrite other files."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.power import PowerCut, PowerCutError, RefusingDisk, count_operations
from vidkin._base import disk
from vidkin._base.outputs import LIST_FILE, check_free, check_outputs, describe_source, open_output
from vidkin.errors import InvalidArgumentError, MediaError

MINE, OTHER = "a table of /videos", "a table of /other"


def write(path: Path, text: str = "content", *, source: str | None = None, failure: Exception | None = None) -> None:
    with open_output(path, source=source) as temporary:
        temporary.write_text(text)
        if failure is not None:
            raise failure


def visible(folder: Path) -> list[str]:
    return sorted(set(os.listdir(folder)) - {LIST_FILE})


def test_file_appears_when_the_block_ends(tmp_path: Path) -> None:
    write(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "content"
    assert os.listdir(tmp_path) == ["a.csv"]


def test_system_error_has_path_and_cause(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match=r"a\.csv: cannot be written: No space left on device$") as caught:
        write(tmp_path / "a.csv", failure=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    assert caught.value.path == str(tmp_path / "a.csv")
    with pytest.raises(MediaError, match=r"a\.csv: cannot be written: disk on fire$"):
        write(tmp_path / "a.csv", failure=OSError("disk on fire"))
    assert os.listdir(tmp_path) == []


def test_other_errors_are_raised_unchanged(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^no such format$"):
        write(tmp_path / "a.csv", failure=ValueError("no such format"))
    assert os.listdir(tmp_path) == []


def test_error_about_the_temporary_file_names_the_target(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match=r"a\.csv: has no room$"), open_output(tmp_path / "a.csv") as temporary:
        raise MediaError(temporary, "has no room")
    with pytest.raises(MediaError, match=r"film\.mp4: cannot be read$"), open_output(tmp_path / "a.csv"):
        raise MediaError("film.mp4", "cannot be read")


def test_path_that_cannot_be_a_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "there").write_text("theirs")
    (tmp_path / "link").symlink_to("there")
    (tmp_path / "broken").symlink_to("nowhere")
    for path, cause in (
        (tmp_path / "none" / "a.csv", r"a\.csv: cannot be written: there is no folder .*/none; create it first$"),
        (tmp_path, "cannot be written: it is a folder, not a file$"),
        (tmp_path / "pipe", "cannot be written: it is a device or a pipe, not a file$"),
        (tmp_path / "link", "cannot be written: it is a link, not a file$"),
        (tmp_path / "broken", "cannot be written: it is a link, not a file$"),
        (tmp_path / ("x" * 300), "cannot be written: File name too long$"),
    ):
        with pytest.raises(MediaError, match=cause):
            write(path, source=MINE)
        with pytest.raises(MediaError, match=cause):
            check_free(path, source=MINE)
        with pytest.raises(InvalidArgumentError, match=cause):
            check_outputs({"--csv": (path, MINE)})
    assert (tmp_path / "there").read_text() == "theirs"


def test_file_of_unknown_origin_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("theirs")
    for source in (None, MINE):
        with pytest.raises(MediaError, match=r"a\.csv: would be overwritten; choose another name, or move"):
            write(path, source=source)
    assert path.read_text() == "theirs"
    assert os.listdir(tmp_path) == ["a.csv"]


def test_empty_file_is_replaced(tmp_path: Path) -> None:
    """``mktemp``, for example, creates empty files."""
    (tmp_path / "a.csv").touch()
    write(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "content"


def test_second_run_with_the_same_source_replaces_the_first(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"a\xff.csv")
    for text in ("one", "two", "two", "three"):
        check_outputs({"--csv": (path, MINE)})
        write(path, text, source=MINE)
        assert path.read_text() == text
    # Writing the same content twice adds only one record.
    lines = (tmp_path / LIST_FILE).read_text().split()
    assert len([json.loads(line)["name"] for line in (tmp_path / LIST_FILE).read_text().splitlines() if line]) == 3
    assert lines


def test_file_from_another_source_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    write(path, source=MINE)
    with pytest.raises(
        InvalidArgumentError, match=r"made it from another source \(a table of /videos\); choose another"
    ):
        check_outputs({"--csv": (path, OTHER)})
    with pytest.raises(MediaError, match="made it from another source"):
        write(path, "other", source=OTHER)
    with pytest.raises(MediaError, match="would be overwritten"):
        write(path, "other")
    assert path.read_text() == "content"


def test_modified_file_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    write(path, source=MINE)
    path.write_text("CONTENT")
    with pytest.raises(
        MediaError, match="and it changed since vidkin made it; choose another name, or move the file away first"
    ):
        write(path, "new", source=MINE)
    path.unlink()
    write(path, "new", source=MINE)
    assert path.read_text() == "new"


def test_restored_backup_can_be_replaced(tmp_path: Path) -> None:
    """The hash is compared, not the modification time, because restoring a backup may change the time."""
    path = tmp_path / "a.csv"
    write(path, source=MINE)
    os.utime(path, (1, 1))
    write(path, "new", source=MINE)
    path.write_text("content")
    write(path, "newer", source=MINE)
    assert path.read_text() == "newer"


def test_media_file_as_output_suggests_an_expanded_shell_pattern(tmp_path: Path) -> None:
    for name in ("film.mp4", "photo.JPG"):
        path = tmp_path / name
        path.write_bytes(b"recorded")
        with pytest.raises(
            InvalidArgumentError,
            match=rf"{name}: would be overwritten; choose another name; the shell has probably "
            rf"expanded a pattern such as \*\{path.suffix}: put a file name after --csv$",
        ):
            check_outputs({"--csv": (path, MINE)})
        assert path.read_bytes() == b"recorded"


def test_input_cannot_be_an_output(tmp_path: Path) -> None:
    source, hard, film = tmp_path / "source.bin", tmp_path / "link", tmp_path / "film.mp4"
    source.touch()  # an empty file is still an input
    film.touch()
    os.link(source, hard)
    for path in (source, hard, tmp_path / "." / "source.bin"):
        with pytest.raises(InvalidArgumentError, match=r"is also an input; choose another output file$"):
            check_outputs({"--csv": (path, MINE)}, inputs=[None, tmp_path / "not there", source])
    with pytest.raises(InvalidArgumentError, match=r"is also an input.* the shell has probably expanded a pattern"):
        check_outputs({"--csv": (film, MINE)}, inputs=[film])
    check_outputs({"--csv": (tmp_path / "new.csv", MINE), "--html": (None, MINE)}, inputs=[source])


def test_two_options_cannot_name_the_same_file(tmp_path: Path) -> None:
    outputs = {"--csv": (tmp_path / "a", MINE), "--html": (tmp_path / "." / "a", OTHER)}
    with pytest.raises(InvalidArgumentError, match="a: --csv and --html name the same file; choose another name"):
        check_outputs(outputs)


def test_file_that_appears_during_the_work_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with pytest.raises(MediaError, match="it appeared or changed in the meantime"), open_output(path, source=MINE):
        path.write_text("theirs")
    assert path.read_text() == "theirs"
    assert visible(tmp_path) == ["a.csv"]


@pytest.mark.parametrize("change", ["written", "replaced", "deleted"])
def test_file_that_changes_during_the_work_is_not_replaced(tmp_path: Path, change: str) -> None:
    path = tmp_path / "a.csv"
    write(path, "first", source=MINE)
    with open_output(path, source=MINE) as temporary:
        temporary.write_text("second")
        if change == "deleted":
            path.unlink()
    assert path.read_text() == "second"
    if change == "deleted":
        return
    theirs = tmp_path / "b"
    theirs.write_text("theirs")
    with pytest.raises(MediaError, match="it appeared or changed"), open_output(path, source=MINE):
        (shutil.copyfile if change == "written" else shutil.move)(theirs, path)
    theirs.unlink(missing_ok=True)
    assert path.read_text() == "theirs"
    assert visible(tmp_path) == ["a.csv"]


@pytest.mark.parametrize("can_exchange", [True, False])
def test_file_that_changes_at_the_last_moment_is_restored(
    tmp_path: Path, can_exchange: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file changes between the last check and the rename, which is an atomic exchange where supported."""
    path = tmp_path / "a.csv"
    write(path, "first", source=MINE)
    done = []

    def interfere(operation: str, name: str, target: str = "") -> None:
        if operation == "rename" and target == str(path) and not done:
            done.append(name)
            if can_exchange:
                (tmp_path / "b").write_text("theirs")
                (tmp_path / "b").replace(path)

    monkeypatch.setattr(disk, "before", interfere)
    if not can_exchange:
        monkeypatch.setattr(disk, "_load_rename", lambda: None)
        write(path, "second", source=MINE)
        assert path.read_text() == "second"
    else:
        with pytest.raises(MediaError, match="it appeared or changed"):
            write(path, "second", source=MINE)
        assert path.read_text() == "theirs"
    assert done
    assert visible(tmp_path) == ["a.csv"]


def test_one_concurrent_writer_wins_and_all_files_are_recorded(tmp_path: Path) -> None:
    """Each thread writes its own file and a shared one."""
    failures: list[MediaError] = []
    start = threading.Barrier(8)

    def work(number: int) -> None:
        start.wait()
        write(tmp_path / f"{number}.csv", str(number), source=MINE)
        try:
            write(tmp_path / "shared.csv", str(number), source=MINE)
        except MediaError as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all("appeared or changed in the meantime" in failure.cause for failure in failures)
    assert len(visible(tmp_path)) == 9
    for number in range(8):
        write(tmp_path / f"{number}.csv", "again", source=MINE)
    write(tmp_path / "shared.csv", "again", source=MINE)


_PROCESS = """
import sys
from pathlib import Path
from vidkin._base.outputs import open_output
folder, number = Path(sys.argv[1]), sys.argv[2]
for count in range(60):
    with open_output(folder / f"{number}-{count}.csv", source="processes") as temporary:
        temporary.write_text(number * 500)
"""


def test_lines_written_by_two_processes_stay_intact(tmp_path: Path) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", _PROCESS, str(tmp_path), str(number)]) for number in (1, 2)]
    assert [process.wait() for process in processes] == [0, 0]
    lines = [json.loads(line) for line in (tmp_path / LIST_FILE).read_text().splitlines() if line]
    assert sorted(line["name"] for line in lines) == visible(tmp_path)
    write(tmp_path / "2-59.csv", "again", source="processes")


def test_damaged_or_forged_list_only_allows_replacing_the_files_it_describes(tmp_path: Path) -> None:
    path = tmp_path / "film.mp4"
    path.write_bytes(b"recorded")
    made = {"name": "film.mp4", "source": MINE, "size": 8, "sha256": "0" * 64}
    damaged = [
        b"",
        b"\x00\xff",
        b"[]",
        b"7",
        b'{"name": "film.mp4"}',
        b'{"name": "film.mp4", "size": "x"}',
        b"[" * 9999,
    ]
    content = b"\n".join([*damaged, json.dumps(made).encode(), json.dumps({**made, "size": None}).encode(), b'{"na'])
    (tmp_path / LIST_FILE).write_bytes(content)
    with pytest.raises(MediaError, match="and it changed since vidkin made it"):
        write(path, source=MINE)
    assert path.read_bytes() == b"recorded"
    # Records added after the truncated line are still read.
    write(tmp_path / "a.csv", source=MINE)
    write(tmp_path / "a.csv", "again", source=MINE)
    assert (tmp_path / LIST_FILE).read_bytes().startswith(content)


@pytest.mark.parametrize("kind", ["folder", "pipe", "link", "hard link"])
def test_list_that_is_not_a_regular_file_is_ignored(tmp_path: Path, kind: str) -> None:
    """Nothing is recorded or replaced."""
    path, victim = tmp_path / LIST_FILE, tmp_path / "theirs"
    victim.write_text("theirs")
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "link":
            path.symlink_to(victim)
        case _:
            os.link(victim, path)
    write(tmp_path / "a.csv", source=MINE)
    with pytest.raises(MediaError, match="would be overwritten"):
        write(tmp_path / "a.csv", "again", source=MINE)
    assert victim.read_text() == "theirs"
    assert (tmp_path / "a.csv").read_text() == "content"


def test_nothing_is_written_into_an_index(tmp_path: Path) -> None:
    index = tmp_path / "c.vidkin"
    (index / "deep").mkdir(parents=True)
    (index / "collection.json").write_text('{"format_version": 3}')
    (tmp_path / "link").symlink_to(index / "deep")
    for path in (index / "collection.json", index / "deep" / "new.csv", tmp_path / "link" / "new.csv"):
        with pytest.raises(MediaError, match=r"is in the folder of the index .*c\.vidkin; choose a file elsewhere"):
            write(path, source=MINE)
    # A folder that merely contains a file of this name is not an index.
    (tmp_path / "collection.json").write_text("[]")
    write(tmp_path / "a.csv", source=MINE)


def test_source_is_described_by_paths_sizes_and_dates(tmp_path: Path) -> None:
    film = tmp_path / "film.mp4"
    film.write_bytes(b"one")
    os.utime(film, (1000, 1000))
    made_of = describe_source("pieces", film)
    assert made_of == f"pieces of {film} (3 bytes, 1970-01-01T00:16:40+00:00)"
    (tmp_path / "link.mp4").symlink_to(film)
    assert describe_source("pieces", tmp_path / "link.mp4") == made_of
    # Another memory card may contain a file of the same name.
    film.write_bytes(b"another")
    assert describe_source("pieces", film) != made_of
    assert describe_source("table", "s3://bucket/c", tmp_path) == f"table of {tmp_path}, s3://bucket/c"
    many = [tmp_path / f"{number}.mp4" for number in range(100)]
    assert describe_source("features", *many) == describe_source("features", *reversed(many))
    assert len(describe_source("features", *many)) < 100
    assert describe_source("features", *many[1:]) != describe_source("features", *many)


def test_full_disk_keeps_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv"
    write(path, "first", source=MINE)
    operations = count_operations(monkeypatch, lambda: write(path, "second", source=MINE))
    for turn in range(len(operations)):
        write(path, f"before {turn}", source=MINE)
        with monkeypatch.context() as patch:
            patch.setattr(disk, "before", RefusingDisk(turn))
            if operations[turn] == "unlink":  # removal of the old file, the last operation
                write(path, f"after {turn}", source=MINE)
            else:
                with pytest.raises(MediaError, match="No space left on device"):
                    write(path, f"after {turn}", source=MINE)
        # The folder is synced after the rename, so a failed sync leaves the new content.
        assert path.read_text() == (f"before {turn}" if turn < operations.index("rename") + 1 else f"after {turn}")


@pytest.mark.parametrize("names", [False, True], ids=["names kept", "names lost"])
def test_power_failure_leaves_the_old_or_new_content_and_the_next_run_works(
    tmp_path: Path, names: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for known in ((), ("first",)):
        for turn in range(20):
            path = tmp_path / f"{len(known)}-{turn}" / "a.csv"
            path.parent.mkdir()
            for text in known:
                write(path, text, source=MINE)
            power = PowerCut(turn, names)
            with monkeypatch.context() as patch:
                patch.setattr(disk, "before", power)
                with suppress(PowerCutError):
                    write(path, "second", source=MINE)
            power.lose()
            left = path.read_text() if path.exists() else None
            assert left in (*known, "second", *(() if known else (None,)))
            write(path, "third", source=MINE)
            assert path.read_text() == "third"
