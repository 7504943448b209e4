"""Configuration files: defaults for options, of a person and of an index, and what is wrong in them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.cli.conftest import Library, run
from tests.support.detections import cut_video
from vidkin.cli.app import app
from vidkin.cli.config import OPTIONS_OF_AN_INDEX, config_path, option_defaults
from vidkin.errors import InvalidArgumentError


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "my settings.toml"
    monkeypatch.setenv("VIDKIN_CONFIG", str(path))
    return path


def test_the_configuration_is_where_the_system_keeps_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("VIDKIN_CONFIG", raising=False)
    monkeypatch.setattr("platformdirs.user_config_path", lambda name, appauthor: tmp_path / "Library" / name)
    assert config_path() == tmp_path / "Library" / "vidkin" / "config.toml"
    monkeypatch.setenv("VIDKIN_CONFIG", str(tmp_path / "own.toml"))
    assert config_path() == tmp_path / "own.toml"


def test_a_section_gives_defaults_and_options_win(config: Path, tmp_path: Path) -> None:
    film = cut_video(tmp_path / "film.mp4")
    config.write_text('[shots]\ndetector = "shotdetect"\nlimit = 1\ntypes = "hard"\nmin-length = 2.2\n')
    outcome = run("shots", film)
    assert "film.mp4: 1 shot of at least 2.2 s, 1 hard cut" in outcome.out
    assert "(shotdetect)" in outcome.out
    outcome = run("shots", film, "--min-length", "0")
    assert "3 shots" in outcome.out
    assert outcome.err == "2 more shots not shown.\n"
    usage = " ".join(run("shots", "--help").out.split())
    assert "[default: shotdetect]" in usage
    assert "join them to a neighbor. [default: 2.2; x>=0]" in usage.replace("merge- short", "merge-short")
    config.write_text("")
    assert "join them to a neighbor. [default: (none); x>=0]" in " ".join(run("shots", "--help").out.split())


def test_defaults_of_a_person_and_what_is_typed_comes_first(library: Library, config: Path) -> None:
    assert len(run("search", library.clip, "--index", library.index, "-f", "json").json["matches"]) > 1
    config.write_text(f'index = "{library.index}"\n[search]\nlimit = 1\nstart = "0:01"\n')
    found = run("search", library.clip, "-f", "json").json
    assert (len(found["matches"]), found["start"], found["index"]) == (1, 1.0, str(library.index))
    assert len(run("search", library.clip, "--limit", "2", "-f", "json").json["matches"]) == 2
    # `index` is shared; other commands take it too.
    assert run("info", "-f", "json").json["videos"] == 4


def test_the_index_has_the_last_word(library: Library, config: Path, tmp_path: Path) -> None:
    index = Path(shutil.copytree(library.index, tmp_path / "own.vidkin"))
    config.write_text("[search]\nlimit = 1\nthreshold = 0.1\n")
    (index / "config.toml").write_text("[search]\nlimit = 2\n")
    for words in (["--index", index], [f"--index={index}"]):
        found = run("search", library.clip, *words, "-f", "json").json
        assert (len(found["matches"]), found["threshold"]) == (2, 0.1)


def test_an_index_named_for_all_commands_is_also_where_videos_are_added(
    library: Library, config: Path, tmp_path: Path
) -> None:
    config.write_text(f'index = "{tmp_path / "own.vidkin"}"\n')
    run("index", library.clip, "--workers", "1")
    assert run("info", "-f", "json").json["videos"] == 1


def test_a_section_of_the_index_that_no_command_has(library: Library, tmp_path: Path) -> None:
    index = Path(shutil.copytree(library.index, tmp_path / "own.vidkin"))
    (index / "config.toml").write_text("[Search]\nlimit = 2\n")
    assert (
        f"{index / 'config.toml'}: [Search] is not the section of a command"
        in run("search", library.clip, "--index", index, status=2).err
    )


def test_an_index_can_be_made_where_its_settings_are_already(library: Library, tmp_path: Path) -> None:
    index = tmp_path / "new.vidkin"
    index.mkdir()
    (index / "config.toml").write_text("[search]\nlimit = 1\nthreshold = 0\n")
    run("index", library.clip, "--index", index, "--workers", "1")
    assert len(run("search", library.clip, "--index", index, "-f", "json").json["matches"]) == 1


def test_a_missing_configuration_file_is_accepted(config: Path) -> None:
    assert not config.exists()
    assert "there is no such file" in run("shots", "gone.mp4", status=3).err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[shots]\nmin_lenght = 3\n", "[shots] has no option 'min_lenght'; choose from copy"),
        (
            "[shot]\nlimit = 3\n",
            "[shot] is not the section of a command; choose from apply, classify, coverage, decisions,",
        ),
        ("[benchmark]\nlimit = 3\n", "[benchmark] is not the section of a command"),
        ("limit = 3\n", "limit must be in the section of a command, for example below [shots]"),
        ("[apply]\nany-file = true\n", "[apply] has no option 'any-file'"),
        ("[shots\n", "the configuration is not TOML"),
        ("[shots]\nlimit = [1, 2]\n", "limit in [shots] must be a single value, got [1, 2]"),
        ("[shots]\nlimit = 0\n", "Invalid value for '--limit' / '-n'"),
    ],
)
def test_invalid_content_is_refused_with_its_cause(config: Path, text: str, message: str) -> None:
    config.write_text(text)
    command = "apply" if text.startswith("[apply]") else "shots"
    assert message in run(command, "film.mp4", status=2).err


def test_a_file_that_cannot_be_read(config: Path) -> None:
    config.mkdir()
    assert "the configuration cannot be read" in run("shots", "film.mp4", status=2).err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a pipe with a name")
def test_a_pipe_in_an_index_is_not_waited_for(tmp_path: Path, config: Path) -> None:
    os.mkfifo(tmp_path / "config.toml")
    assert "there is no index" in run("info", "--index", tmp_path, status=3).err


def test_a_file_of_a_stranger_that_no_limit_allows_is_refused_in_a_line(tmp_path: Path, config: Path) -> None:
    for text, cause in (
        ("a." * 50_000 + "b = 1", "parts of a dotted name must be at most 16, got 50,001"),
        ("[search]\nlimit = " + "1" * 5001, "a number must have at most 100 digits, got more"),
    ):
        (tmp_path / "config.toml").write_text(text)
        err = run("info", "--index", tmp_path, status=2).err
        assert f"the configuration is not TOML: {cause}" in " ".join(err.split())


def test_help_and_other_commands_do_not_suffer(config: Path) -> None:
    config.write_text("[search]\nlimitt = 1\n")
    assert "--limit" in run("search", "--help").out
    assert "doctor" in run("--help").out
    assert run("stand-in", "hello").out == "hello\n"


# What an index may set of its reader's commands.


HARMLESS = {
    ("duplicates", "format"),
    ("index", "list_skipped"),
    ("info", "format"),
    ("info", "videos"),
    ("match", "format"),
    ("recurring", "format"),
    ("search", "format"),
    ("search", "limit"),
    ("search", "threshold"),
}
"""Written out a second time: whoever adds to the table of the program thinks about it twice."""


def commands() -> Iterator[tuple[str, Any, list[str]]]:
    group: Any = typer.main.get_command(app)
    context = group.make_context("vidkin", ["info"], resilient_parsing=True)
    names = [name for name, entry in group.table.items() if not entry.is_group]
    for name in names:
        yield name, group.get_command(context, name), names


EVERY_OPTION = [
    (name, option.name, command.params, sections)
    for name, command, sections in commands()
    for option in command.params
    if option.param_type_name == "option"
]


def test_the_table_of_harmless_options_is_as_it_was_decided_and_names_real_options() -> None:
    listed = {(command, option) for command, options in OPTIONS_OF_AN_INDEX.items() for option in options}
    assert listed == HARMLESS
    assert listed <= {(command, option) for command, option, _, _ in EVERY_OPTION}


@pytest.mark.parametrize(
    ("command", "option", "options", "sections"),
    EVERY_OPTION,
    ids=[f"{command}-{option}" for command, option, _, _ in EVERY_OPTION],
)
def test_an_index_sets_only_what_is_harmless(
    command: str, option: str, options: list[Any], sections: list[str], tmp_path: Path, config: Path
) -> None:
    folder = tmp_path / "collection.vidkin"
    folder.mkdir()
    text = f'[{command}]\n{option.replace("_", "-")} = "1"\n'
    (folder / "config.toml").write_text(text)
    words = ["--index", str(folder)]
    if (command, option) in HARMLESS:
        assert option_defaults(command, options, words, sections) == {option: "1"}
    elif any(each.name == "index" and each.param_type_name == "option" for each in options):
        with pytest.raises(InvalidArgumentError, match=rf"an index may set .* of `vidkin {command}`, got "):
            option_defaults(command, options, words, sections)
    else:
        assert option_defaults(command, options, words, sections) == {}
    # The same words in the file of the person are taken.
    (folder / "config.toml").unlink()
    config.write_text(text)
    assert list(option_defaults(command, options, words, sections)) == [option]


@pytest.mark.parametrize("name", ["index", "extractor", "weights", "whitening", "workers"])
def test_an_index_sets_nothing_above_the_sections(name: str, tmp_path: Path, config: Path) -> None:
    (tmp_path / "config.toml").write_text(f'{name} = "1"\n')
    every = {command: (params, sections) for command, _, params, sections in EVERY_OPTION}
    for command, (params, sections) in every.items():
        words = ["-i", str(tmp_path)]
        known = {option.name for option in params if option.param_type_name == "option"}
        if {"index", name} <= known:
            with pytest.raises(InvalidArgumentError, match=f"got {name}; if you want it, move it to"):
                option_defaults(command, params, words, sections)
        else:
            assert option_defaults(command, params, words, sections) == {}


def test_an_untrusted_index_cannot_write_to_the_users_files(
    library: Library, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    index = Path(shutil.copytree(library.index, tmp_path / "collection.vidkin"))
    diary = tmp_path / "diary.txt"
    diary.write_text("dear diary")
    (index / "config.toml").write_text(f'[duplicates]\noutput = "{diary}"\nplan = "{diary}"\n')
    for words in (["--index", index], []):
        err = run("duplicates", *words, "-q", status=2).err
        assert "an index may set format of `vidkin duplicates`, got output, plan" in err
    assert diary.read_text() == "dear diary"
    # What it says about other commands is no matter, and commands without an index never look into it.
    assert run("info", "-f", "json").json["videos"] == 4
    (index / "config.toml").write_text(f'[shots]\noutput = "{diary}"\nthreshold = 2.0\n')
    run("shots", library.clip, "-f", "json")
    assert diary.read_text() == "dear diary"
