"""The program as a whole: help, errors, interruption, and what goes where."""

from __future__ import annotations

import ast
import gc
import json
import logging
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from tests.cli.conftest import Library, make_videos, run
from tests.support.videos import encode, pan
from vidkin import __version__
from vidkin._base.install import install_command
from vidkin.cli import main
from vidkin.cli.app import _LogLines, app
from vidkin.errors import VidkinError
from vidkin.index import Index

PROGRAM = [sys.executable, "-c", "from vidkin.cli import main; main()"]


def program(*words: str | Path, **options: object) -> subprocess.CompletedProcess[bytes]:
    """The real program in a process of its own."""
    return subprocess.run([*PROGRAM, *map(str, words)], capture_output=True, timeout=120, **options)  # type: ignore[call-overload, no-any-return]


def test_help_comes_at_once() -> None:
    """Processor time, not time on the clock: the tests share their machine."""
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = program("--help")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.returncode == 0
        times.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    assert min(times) < 0.4


def test_an_error_that_is_logged_shows_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        1 // 0  # noqa: B018
    except ZeroDivisionError:
        cause = sys.exc_info()
    record = logging.LogRecord("vidkin.web", logging.ERROR, __file__, 1, "%s failed\x1b[2J", ("a job",), cause)
    _LogLines().emit(record)
    first, *traceback = capsys.readouterr().err.splitlines()
    assert first == "Warning: a job failed�[2J"
    assert traceback[0] == "Traceback (most recent call last):"
    assert traceback[-1].startswith("ZeroDivisionError: ")


@pytest.mark.parametrize(
    "command",
    [
        *("index", "search", "match", "duplicates", "info", "remove", "embed", "doctor", "demo", "whiten"),
        *("shots", "train", "evaluate", "export"),
    ],
)
def test_every_command_explains_itself(command: str) -> None:
    assert command in run("--help").out
    shown = run(command, "--help").out
    assert "--help" in shown
    assert ("--format table|" in shown) == (command not in ("demo", "whiten", "embed", "export", "remove"))


def test_the_help_shows_commands_in_groups_and_few_options() -> None:
    shown = run("--help").out
    places = [shown.index(f"\n{name}:\n") for name in ("Find", "Copies", "Shots", "Learn", "Look")]
    assert places == sorted(places)
    root: Any = typer.main.get_command(app)
    # Those of vidkin-research, too, where it is installed.
    commands = [root.commands[name] for name, entry in root.table.items() if not entry.is_group]
    visible = [
        (command.name, option.opts)
        for command in commands
        for option in command.params
        if option.param_type_name == "option" and not option.hidden and option.name != "stand_in"
    ]
    assert len(visible) <= 120


def test_a_short_name_means_the_same_in_every_command() -> None:
    root: Any = typer.main.get_command(app)
    names: dict[str, set[str]] = {}
    for name, entry in root.built_in.items():
        for option in root.commands[name].params if not entry.is_group else ():
            for short in option.opts:
                if re.fullmatch("-[a-z]", short):
                    names.setdefault(short, set()).add(option.name)
    assert {short: full for short, full in names.items() if len(full) > 1} == {}
    assert (names["-t"], names["-n"]) == ({"threshold"}, {"limit"})


def test_help_has_words_for_what_values_are() -> None:
    root: Any = typer.main.get_command(app)
    for name in root.built_in:
        shown = run(name, "--help").out
        assert not re.search(r"list\[|\[\[|<(int|float|str|dir|file|path)\b", shown), name
    assert "shots [OPTIONS] VIDEO...\n" in run("shots", "--help").out
    assert "recurring [OPTIONS] [FOLDER...]\n" in run("recurring", "--help").out


def test_the_version_is_shown() -> None:
    assert run("--version").out == run("-V").out == f"vidkin {__version__}\n"


def test_the_summaries_are_the_first_sentences_of_the_commands() -> None:
    """The table that `vidkin --help` prints without importing a command says what the command says of itself."""
    root = typer.main.get_command(app)
    assert root.table  # type: ignore[attr-defined]
    for name, entry in root.table.items():  # type: ignore[attr-defined]
        help_text = root.commands[name].help  # type: ignore[attr-defined]
        assert entry.summary == help_text.partition("\n")[0].partition(". ")[0].rstrip(".") + "."


def test_commands_come_with_other_packages() -> None:
    """An entry point of the group ``vidkin.commands``; vidkin-research is hidden from these tests."""
    assert re.search(r"stand-in +Echo the word\.", run("--help").out)
    assert run("stand-in", "hello").out == "hello\n"


@pytest.mark.parametrize("command", ["benchmark", "fit", "labels", "train-shots"])
def test_commands_of_research_say_what_to_install(command: str) -> None:
    assert " ".join(run(command, "--help", status=3).err.split()) == (
        f"Error: vidkin {command} needs the package vidkin-research, which is not installed; install it with: "
        f"{install_command(package='vidkin-research')}"
    )


# Modules of the command line that are no command, and the group of commands that is asked for its help.
LIGHT = {f"vidkin.cli{name}" for name in ("", ".app", ".commands", ".config", ".extra_options", ".options")}


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_help_imports_no_command_and_no_layout(words: list[str]) -> None:
    code = (
        f"import sys, atexit; known = {LIGHT}; from vidkin.cli import main; "
        "atexit.register(lambda: print([m for m in sys.modules if m not in known and "
        "m.startswith(('rich', 'vidkin.cli', 'stand_in.'))], file=sys.stderr)); main()"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


def test_a_mistyped_command_is_suggested() -> None:
    assert "No such command 'searhc'. Did you mean 'search'?" in run("searhc", status=2).err


@pytest.mark.parametrize("words", [("frobnicate",), ("search",), ("search", "a", "--frobnicate"), ("index",)])
def test_wrong_usage_has_status_2(words: tuple[str, ...]) -> None:
    outcome = run(*words, status=2)
    assert outcome.out == ""
    assert "Usage:" in outcome.err


def test_an_error_is_one_line_and_a_bug_keeps_its_traceback(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise VidkinError("the disk\nis [red]full")

    monkeypatch.setattr(Index, "videos", fail)
    outcome = run("info", "--videos", "--index", library.index, status=3)
    assert outcome.err == "Error: the disk is [red]full\n"
    assert outcome.out == ""
    # With --format json there is a document in any case.
    outcome = run("info", "--videos", "--index", library.index, "-f", "json", status=3)
    assert outcome.json == {"error": {"kind": "VidkinError", "message": "the disk\nis [red]full", "status": 3}}

    def bug(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(Index, "videos", bug)
    result = CliRunner().invoke(app, ["info", "--videos", "--index", str(library.index)])
    assert isinstance(result.exception, ZeroDivisionError)


def test_an_interrupted_command_says_so(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Index, "info", interrupt)
    outcome = run("info", "--index", library.index, status=130)
    assert outcome.err == "Interrupted. Finished work is saved; run the same command again to resume.\n"
    assert outcome.out == ""
    assert run("info", "--index", library.index, "-f", "json", status=130).json["error"]["kind"] == "Interrupted"


@pytest.mark.process
def test_the_program_separates_results_from_messages(library: Library) -> None:
    """Even where the terminal knows no UTF-8 and a name is not valid."""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "VIDKIN_INDEX": str(library.index)}
    done = program("info", "--videos", "-f", "json", env=environment)
    assert done.returncode == 0
    assert json.loads(done.stdout)["videos"] == 4
    assert done.stderr == b""
    shown = program("info", "--videos", env=environment)
    assert shown.returncode == 0
    assert b"d?a ? [2].mp4" in shown.stdout
    failed = program("search", "gone.mp4", env=environment)
    assert failed.returncode == 3
    assert failed.stdout == b""
    assert b"gone.mp4" in failed.stderr
    assert b"Traceback" not in failed.stderr


@pytest.mark.kill
@pytest.mark.timeout(900)  # minutes, beside other work
def test_ctrl_c_leaves_an_index_that_the_same_command_completes(tmp_path: Path) -> None:
    folder, index = tmp_path / "videos", tmp_path / "index"
    make_videos(folder)
    for number in range(30):
        encode(folder / f"{number}.mp4", pan("gravel", 60, seed=number))
    process = subprocess.Popen(
        [*PROGRAM, "index", str(folder), "--index", str(index), "--workers", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline and process.poll() is None:
        if (index / "collection.json").is_file() and _videos(index) >= 1:
            break
        time.sleep(0.2)
    assert process.poll() is None, "it was done before it could be interrupted"
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the program and its workers
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert b"Interrupted (" in err  # and how far it came
    assert b"Traceback" not in err
    assert out == b""
    kept = run("info", "--index", index, "-f", "json").json["videos"]
    assert 1 <= kept <= 34
    report = run("index", folder, "--index", index, "--workers", "1", "-f", "json").json
    assert report["unchanged"] == kept
    assert report["videos"] == 34


@pytest.mark.process
def test_a_reader_that_stops_early_causes_no_traceback(library: Library) -> None:
    if shutil.which("head") is None:
        pytest.skip("there is no `head` here")
    line = shlex.join(PROGRAM) + f" info --videos --format json --index '{library.index}' | head -c 1"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {line}"], capture_output=True, timeout=60)
    assert b"Traceback" not in done.stderr


def _videos(index: Path) -> int:
    with Index.open(index, create=False, read_only=True) as collection:
        return len(collection.videos())


@pytest.mark.parametrize("words", [["search", "https://example.org/a.mp4"], ["index", "smb://nas/videos"]])
def test_an_address_instead_of_a_file_is_refused_with_advice(words: list[str]) -> None:
    outcome = run(*words, status=2)
    assert f"{words[1]}: vidkin reads files; download it first, or mount the share" in outcome.err.replace("\n", " ")


@pytest.mark.thorough
def test_quiet_leaves_results_and_errors_and_verbose_tells_more(library: Library, tmp_path: Path) -> None:
    words = ("search", library.clip, "--index", library.index)
    usual = run(*words)
    assert "Scores: 1 means identical" in usual.err
    quiet = run("-q", *words)
    assert (quiet.out, quiet.err) == (usual.out, "")
    assert run("info", "--index", library.index, "--quiet").err == ""
    assert run("-q", "info", "--index", tmp_path / "none", status=3).err.startswith("Error: there is no index")
    assert re.search(r"cli.app: search took \d+\.\d s", run(*words, "-v").err)
    assert run(*words).err == usual.err  # the next call is as usual again
    assert "use --quiet or --verbose, not both" in run(*words, "-q", "-v", status=2).err
    # After -- they are names.
    assert "-q" in run("-q", "search", "--index", library.index, "--", "-q", status=3).err


def test_a_shell_completes_commands_and_options() -> None:
    # The name of the program is part of the variable's.
    code = "import sys; sys.argv[0] = 'vidkin'; from vidkin.cli import main; main()"
    for words, place, expected in (("vidkin sea", 1, b"search"), ("vidkin search --thr", 2, b"--threshold")):
        variables = {"_VIDKIN_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(place)}
        done = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, **variables}, capture_output=True, check=False
        )
        assert done.stdout.split() == [expected]


@pytest.mark.parametrize(
    ("name", "ours", "other"), [("OMP_WAIT_POLICY", "PASSIVE", "ACTIVE"), ("OPENBLAS_NUM_THREADS", "1", "2")]
)
def test_no_thread_spins_unless_somebody_chose_otherwise(name: str, ours: str, other: str) -> None:
    code = f"import os, sys\nfrom vidkin.cli.app import run\ntry: run()\nfinally: print(os.environ['{name}'])"
    usual = {variable: value for variable, value in os.environ.items() if variable != name}
    for environment, expected in ((usual, ours), ({**usual, name: other}, other)):
        done = subprocess.run(
            [sys.executable, "-c", code, "--version"], env=environment, capture_output=True, text=True
        )
        assert done.stdout.split()[-1] == expected


@pytest.mark.process
def test_what_libraries_make_is_hardly_looked_through_for_garbage() -> None:
    """By default their import alone collects the second generation some ten times, a twentieth of a start."""
    code = (
        "import gc\nfrom vidkin.cli.app import run\ntry: run()\n"
        "except SystemExit: before = gc.get_stats(); import faiss, onnxruntime; print([before, gc.get_stats()])"
    )
    words = [sys.executable, "-c", code, "--version"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    before, after = (
        [generation["collections"] for generation in stats] for stats in ast.literal_eval(done.stdout.splitlines()[-1])
    )
    assert after[0] - before[0] < 40
    assert after[1:] == before[1:]


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="a folder in use cannot be removed")
def test_a_current_folder_that_was_removed_is_said(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    code = f"import os; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); from vidkin.cli.app import run; run()"
    done = subprocess.run([sys.executable, "-c", code, "info"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (3, "Error: the current folder was removed; change to another one\n")


def test_nothing_is_collected_at_the_end_of_a_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What libraries have made takes the interpreter as long to walk over, before it ends, as to print a table."""
    monkeypatch.setattr(sys, "argv", ["vidkin", "--version"])
    gc.unfreeze()  # what the tests themselves have frozen
    usual, handler = gc.get_threshold(), signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 0
        assert gc.get_freeze_count() > 1000
    finally:
        signal.signal(signal.SIGINT, handler)
        gc.set_threshold(*usual)
    assert __version__ in capsys.readouterr().out


def test_a_command_warns_once_of_each_file(capsys: pytest.CaptureFixture[str]) -> None:
    reader = logging.getLogger("vidkin.media.reader")
    for _ in range(2):
        run("index", "--help")
        for path in ("a.mp4", "b.mp4", "a.mp4"):
            reader.warning("%s: %s", path, "the file is damaged: 1 packet skipped")
        said = [line.split(":")[1] for line in capsys.readouterr().err.splitlines()]
        assert said == [" a.mp4", " b.mp4"]


def test_the_form_that_scripts_try_first_is_understood_and_not_listed(library: Library) -> None:
    words = ("search", library.clip, "--index", library.index)
    assert run(*words, "--json").json == run(*words, "--format", "json").json
    assert "--json" not in run("search", "--help").out
    assert "No such option" in run("serve", "--json", status=2).err
