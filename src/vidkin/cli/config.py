"""Defaults of options from configuration files.

A configuration file has a section for each command, with the options as names; above the sections what many commands
share. The file of a person is ``vidkin/config.toml`` in the folder that the system has for settings (on Linux
``$XDG_CONFIG_HOME`` or ``~/.config``), or what ``$VIDKIN_CONFIG`` names. ``config.toml`` in the folder of an index
comes before it, but an index may be a stranger's: it can set :data:`OPTIONS_OF_AN_INDEX` only, which change what is
shown, and nothing else.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from vidkin.errors import InvalidArgumentError

DEFAULT_INDEX = "collection.vidkin"
INDEX_CONFIG = "config.toml"
"""Name of the file in the folder of an index."""

OPTIONS_OF_AN_INDEX: Mapping[str, frozenset[str]] = {
    "duplicates": frozenset({"format"}),
    "index": frozenset({"list_skipped"}),
    "info": frozenset({"format", "videos"}),
    "match": frozenset({"format"}),
    "recurring": frozenset({"format"}),
    "search": frozenset({"format", "limit", "threshold"}),
}
"""Options that the file of an index may set, by command and parameter; an option that is not listed is refused.

Listed is what changes only which results are shown and how. What names a path, an address, a program or a model, what
writes, and what decides which files a plan removes (``threshold``, ``keep``, ``parts`` and the folders of
``duplicates``) is not.
"""

# Options allowed above the sections; each command uses those that it has.
_SHARED = ("index", "device", "extractor", "weights", "whitening", "workers")


def config_path() -> Path:
    """Where the configuration file of a person is, or would be."""
    if named := os.environ.get("VIDKIN_CONFIG"):
        return Path(named).expanduser()
    from platformdirs import user_config_path

    return user_config_path("vidkin", appauthor=False) / "config.toml"


def cache_folder() -> Path:
    """The folder for indexes that commands keep between runs: ``$VIDKIN_CACHE``, or the system's cache folder."""
    if named := os.environ.get("VIDKIN_CACHE"):
        return Path(named).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("vidkin", appauthor=False)


def option_defaults(
    command: str, options: Sequence[Any], arguments: Sequence[str], sections: Collection[str]
) -> dict[str, Any]:
    """The defaults that both files give to the options of a command, by the names of its parameters.

    Args:
        command: The name of the command and of the section.
        options: The parameters of the command, as click has them.
        arguments: Arguments after the command, for the index they name.
        sections: Names of all commands, which are the possible sections of a file.

    Raises:
        InvalidArgumentError: A file cannot be read, is not TOML, has a section of no command, or an option that the
            command lacks, or that an index may not set.
    """
    defaults = _read_defaults(config_path(), command, options, sections)
    # A command that reads no index ignores an index in the current folder.
    if not any(option.name == "index" and option.param_type_name == "option" for option in options):
        return defaults
    index = _named_index(arguments) or os.environ.get("VIDKIN_INDEX") or defaults.get("index") or DEFAULT_INDEX
    path = Path(str(index)).expanduser() / INDEX_CONFIG
    shown = _read_defaults(path, command, options, sections)
    allowed = OPTIONS_OF_AN_INDEX.get(command, frozenset())
    if refused := shown.keys() - allowed:
        raise InvalidArgumentError(
            f"{path}: an index may set {_list_options(allowed) or 'no option'} of `vidkin {command}`, got "
            f"{_list_options(refused)}; if you want it, move it to {config_path()} or to the command line, and remove "
            "it from the index"
        )
    return defaults | shown


def show_defaults(command: Any, defaults: Mapping[str, Any]) -> Any:
    """The command whose help shows these defaults, also where it has a text (``none``) for those that it came with."""
    shown = copy.copy(command)
    shown.params = [copy.copy(option) for option in command.params]
    for option in shown.params:
        if option.name in defaults:
            option.show_default = True
    return shown


def _read_defaults(path: Path, command: str, options: Sequence[Any], sections: Collection[str]) -> dict[str, Any]:
    """Options that a file sets for a command, by names of its parameters."""
    known = {option.name: option for option in options if option.param_type_name == "option" and option.name != "help"}
    section: Mapping[str, Any] = {}
    shared: dict[str, Any] = {}
    for name, value in _read(path).items():
        if isinstance(value, Mapping):
            if name not in sections:
                raise InvalidArgumentError(
                    f"{path}: [{name}] is not the section of a command; choose from {', '.join(sorted(sections))}"
                )
            section = value if name == command else section
        elif name not in _SHARED:
            raise InvalidArgumentError(
                f"{path}: {name} must be in the section of a command, for example below [shots]; above the "
                f"sections there can be {', '.join(_SHARED)}"
            )
        elif name in known:
            shared[name] = value
    defaults: dict[str, Any] = {}
    for name, value in {**shared, **section}.items():
        option = known.get(name.replace("-", "_"))
        if option is None:
            choices = _list_options(known.keys())
            raise InvalidArgumentError(f"{path}: [{command}] has no option {name!r}; choose from {choices}")
        is_list = isinstance(value, list)
        takes_list = option.multiple or (is_list and option.nargs == len(value) > 1)
        if isinstance(value, Mapping) or (is_list and not takes_list):
            accepted = "a single value" if option.nargs == 1 else f"a list of {option.nargs} values"
            raise InvalidArgumentError(f"{path}: {name} in [{command}] must be {accepted}, got {value!r}")
        # Text would be read as a list of its letters.
        defaults[option.name] = [value] if option.multiple and not is_list else value
    return defaults


def _list_options(names: Collection[str]) -> str:
    return ", ".join(sorted(name.replace("_", "-") for name in names))


def _read(path: Path) -> Mapping[str, Any]:
    """The content of a file; nothing if there is no file."""
    try:
        if not (path.is_file() or path.is_dir()):  # reading a pipe would wait for a writer, and a device never ends
            return {}
        # Help does not need them.
        import tomllib

        from vidkin._base.toml import read_toml

        return read_toml(path)
    except (OSError, UnicodeDecodeError) as error:
        cause = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InvalidArgumentError(f"{path}: the configuration cannot be read: {cause}") from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidArgumentError(f"{path}: the configuration is not TOML: {error}") from error


def _named_index(arguments: Sequence[str]) -> str | None:
    for position, word in enumerate(arguments):
        if word in ("--index", "-i") and position + 1 < len(arguments):
            return arguments[position + 1]
        if word.startswith("--index="):
            return word.removeprefix("--index=")
    return None
