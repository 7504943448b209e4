"""Names such as ``timm:resnet50?size=256`` and ``package.module:attribute``, parsed and loaded on first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from vidkin.errors import InvalidArgumentError

__all__ = ["Name", "lazy_names", "load_attribute", "parse_name"]

_TYPE_NAMES: Mapping[type, str] = {int: "a whole number", float: "a number"}


@dataclass(frozen=True, slots=True)
class Name:
    """A name (``prefix``, ``prefix:address`` or a path), optionally followed by ``?setting=value&setting=value``.

    Attributes:
        text: The name as it was written.
        path: All before the question mark.
        prefix: All before the first colon of that.
        address: All after that colon; None where there is no colon.
        query: All after the question mark; None where there is no question mark.
    """

    text: str
    path: str
    prefix: str
    address: str | None
    query: str | None

    def settings(self) -> dict[str, str]:
        """The settings after the question mark, in the order written.

        Raises:
            InvalidArgumentError: They are malformed, or one is given twice.
        """
        try:
            pairs = parse_qsl(self.query or "", keep_blank_values=True, strict_parsing=bool(self.query))
        except ValueError as error:
            raise InvalidArgumentError(
                f"settings must have the form name=value&name=value, got {self.query!r} in {self.text!r}"
            ) from error
        settings: dict[str, str] = {}
        for setting, value in pairs:
            if setting in settings:
                raise InvalidArgumentError(f"{self.text!r} has the setting {setting} twice; give it once")
            settings[setting] = value
        return settings

    def typed_settings(self, types: Mapping[str, type]) -> dict[str, Any]:
        """The settings, each converted to its type (int, float or str).

        Raises:
            InvalidArgumentError: As for `settings`; or a setting is unknown or has a value of the wrong type.
        """
        settings: dict[str, Any] = {}
        for setting, value in self.settings().items():
            if setting not in types:
                raise InvalidArgumentError(
                    f"{self.text!r} has no setting {setting!r}; choose from {', '.join(sorted(types)) or 'none'}"
                )
            try:
                settings[setting] = types[setting](value)
            except ValueError as error:
                raise InvalidArgumentError(
                    f"{setting} must be {_TYPE_NAMES.get(types[setting], 'text')}, got {value!r} in {self.text!r}"
                ) from error
        return settings


def parse_name(text: str) -> Name:
    """Split a name into its parts. Any text is accepted; settings are checked when they are read."""
    path, question, query = text.partition("?")
    prefix, colon, address = path.partition(":")
    return Name(text, path, prefix, address if colon else None, query if question else None)


def load_attribute(place: str) -> Any:
    """Import a module and return the object that ``package.module:attribute`` names."""
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)


def lazy_names(package: str, *targets: str) -> Callable[[str], object]:
    """The ``__getattr__`` of a package whose surface is wider than what most of its users load.

    Args:
        package: Name of the package, ``__name__`` in its ``__init__``.
        targets: Where its names come from, each as ``"package.module:name"``.
    """
    homes = {target.partition(":")[2]: target for target in targets}

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = load_attribute(homes[name])
        setattr(sys.modules[package], name, value)
        return value

    return get
