"""The user's configuration file: a section a command, with the options as names.

It is ``vidkin/config.toml`` in ``$XDG_CONFIG_HOME`` or ``~/.config``, or what ``$VIDKIN_CONFIG`` names.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vidkin.errors import InvalidArgumentError

__all__ = ["config_path", "option_defaults", "read_sections"]

_VARIABLE = "VIDKIN_CONFIG"


def config_path() -> Path:
    """Where the configuration file is, or would be."""
    if named := os.environ.get(_VARIABLE):
        return Path(named).expanduser()
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(home).expanduser() / "vidkin" / "config.toml"


def read_sections(path: Path) -> Mapping[str, Mapping[str, Any]]:
    """The sections of a configuration file, none if there is no file.

    Raises:
        InvalidArgumentError: It cannot be read, is not TOML, or has settings outside of sections.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        cause = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InvalidArgumentError(f"{path}: the configuration cannot be read: {cause}") from error
    import tomllib

    from vidkin._base.toml import parse_toml

    try:
        document = parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidArgumentError(f"{path}: the configuration is not TOML: {error}") from error
    for name, section in document.items():
        if not isinstance(section, Mapping):
            raise InvalidArgumentError(
                f"{path}: {name} must be in the section of a command, for example below [shots]"
            )
    return document


def option_defaults(
    path: Path, command: str, section: Mapping[str, Any], options: Sequence[Any]
) -> dict[str, Any]:
    """The defaults that a section gives to the options of a command, by the names of its parameters.

    Args:
        path: The file, for messages.
        command: The name of the command and of the section.
        section: Names of options, with hyphens or underscores, and their values.
        options: The parameters of the command, as click has them.

    Raises:
        InvalidArgumentError: The command has no such option.
    """
    known = {option.name: option for option in options if option.param_type_name == "option"}
    defaults: dict[str, Any] = {}
    for name, value in section.items():
        option = known.get(name.replace("-", "_"))
        if option is None:
            choices = ", ".join(sorted(name.replace("_", "-") for name in known if name != "help"))
            raise InvalidArgumentError(f"{path}: [{command}] has no option {name!r}; choose from {choices}")
        is_list = isinstance(value, list)
        if isinstance(value, Mapping) or (is_list and not option.multiple):
            raise InvalidArgumentError(f"{path}: {name} in [{command}] must be a single value, got {value!r}")
        # A text would be taken for a list of its letters.
        defaults[option.name] = [value] if option.multiple and not is_list else value
    return defaults
