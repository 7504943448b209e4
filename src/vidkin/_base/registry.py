"""Parse names such as ``timm:resnet50?size=256``, and load ``package.module:attribute`` targets on first use."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast
from urllib.parse import parse_qsl

from vidkin._base.install import install_command
from vidkin.errors import InvalidArgumentError, MissingPartError, VidkinError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_TYPE_NAMES: Mapping[type, str] = {int: "a whole number", float: "a number"}


@dataclass(frozen=True, slots=True)
class Name:
    """A name (``prefix``, ``prefix:address`` or a path), optionally followed by ``?setting=value&setting=value``.

    Attributes:
        text: The name as it was written.
        path: The part before the question mark.
        prefix: The part of the path before its first colon.
        address: The part of the path after that colon; None if there is no colon.
        query: The part after the question mark; None if there is no question mark.
    """

    text: str
    path: str
    prefix: str
    address: str | None
    query: str | None

    def settings(self) -> dict[str, str]:
        """Parse the settings after the question mark, in the order they are written.

        Raises:
            InvalidArgumentError: The settings are malformed, or one is given twice.
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
                raise InvalidArgumentError(f"{self.text!r} sets {setting} twice; set it once")
            settings[setting] = value
        return settings

    def typed_settings(self, types: Mapping[str, type]) -> dict[str, Any]:
        """Parse the settings and convert each to its type (int, float or str).

        Raises:
            InvalidArgumentError: As for `settings`, and if a setting is unknown or its value has the wrong type.
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
    """Split a name into its parts. Any text is accepted; settings are checked only when they are parsed."""
    path, question, query = text.partition("?")
    prefix, colon, address = path.partition(":")
    return Name(text, path, prefix, address if colon else None, query if question else None)


def load_attribute(target: str) -> Any:
    """Import a module and return the object at ``package.module:attribute``.

    Raises:
        MissingPartError: The module needs a package that one of vidkin's extras installs and that is missing.
    """
    module, _, attribute = target.partition(":")
    with name_missing_parts():
        return getattr(importlib.import_module(module), attribute)


def lazy_names(package: str, *targets: str) -> Callable[[str], object]:
    """Return a ``__getattr__`` for a package that imports its names on first use.

    Args:
        package: Name of the package: ``__name__`` in its ``__init__``.
        targets: Where its names are defined, each as ``"package.module:name"``; by default, the imports of the package
            under ``if TYPE_CHECKING``, so that every name is declared only once.
    """
    explicit = {target.partition(":")[2]: target for target in targets}
    module = sys.modules[package]
    setattr(module, "__dir__", lambda: sorted(module.__all__))  # noqa: B010 - type checkers reject a module's __dir__

    def get(name: str) -> object:
        sources = explicit or _find_typed_imports(package)
        if name not in sources:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = load_attribute(sources[name])
        setattr(sys.modules[package], name, value)
        return value

    return get


@cache
def _find_typed_imports(package: str) -> Mapping[str, str]:
    """Map each name that a package imports only for type checkers to its ``"package.module:name"``."""
    tree = ast.parse(pkgutil.get_data(package, "__init__.py") or b"")
    found = (line for block in tree.body if isinstance(block, ast.If) for line in block.body)
    return {
        alias.name: f"{line.module}:{alias.name}"
        for line in found
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }


T = TypeVar("T")


class Registry(Generic[T]):
    """Entries by prefix, loaded on first use.

    Args:
        noun: Singular noun for an entry, for messages: ``"extractor"``.
        entries: Entries by prefix, each the object itself or ``"package.module:attribute"`` to avoid heavy imports.
        usages: Syntax of names by prefix, for lists and messages: ``"timm:<model>"``.
        usage: Syntax of names with any other prefix; ``{prefix}`` is the placeholder.
        group: Entry point group in which other packages list their entries; built-in entries take precedence. The name
            of an entry point is a prefix, or the syntax of names with that prefix: ``"prefix:<model>"``. The latter
            can also add names with an address to a built-in prefix that takes none.
        researched: Whether vidkin-research adds entries; if so, messages suggest installing it.
        error: Error class for an unknown name.
    """

    def __init__(
        self,
        noun: str,
        entries: Mapping[str, T | str],
        *,
        usages: Mapping[str, str] | None = None,
        usage: str = "{prefix}",
        group: str | None = None,
        researched: bool = False,
        error: type[VidkinError] = InvalidArgumentError,
    ) -> None:
        self._noun = noun
        self._entries: dict[str, T | str] = dict(entries)
        self._usages = dict(usages or {})
        self._usage = usage
        self._group = group
        self._has_research = researched
        self._error = error

    def __contains__(self, prefix: object) -> bool:
        """Whether this prefix is built in or registered; entry points are not checked."""
        return prefix in self._entries

    def register(self, prefix: str, entry: T, *, usage: str | None = None) -> None:
        """Add an entry.

        Args:
            prefix: Letters, digits, ``_`` and ``-``.
            entry: The entry that `find` returns for it.
            usage: Syntax of names with this prefix; default: the common syntax.

        Raises:
            InvalidArgumentError: The prefix is malformed or in use.
        """
        if not prefix.replace("_", "").replace("-", "").isalnum():
            raise InvalidArgumentError(
                f"the prefix of a {self._noun} must consist of letters, digits, '_' and '-', got {prefix!r}"
            )
        if prefix in self._entries:
            raise InvalidArgumentError(
                f"the prefix {prefix!r} is in use; choose one other than {', '.join(self._entries)}"
            )
        self._entries[prefix] = entry
        if usage is not None:
            self._usages[prefix] = usage

    def find(self, prefix: str, *, addressed: bool = False) -> T | None:
        """Load the entry of a prefix; None if there is none.

        Args:
            prefix: The first part of a name.
            addressed: Whether the name has an address, as in ``prefix:address``.
        """
        entry = self._entries.get(prefix)
        adds_addresses = addressed and self._usages.get(prefix, prefix) == prefix
        if entry is None or adds_addresses:
            for plugin in self._iter_plugins():
                own, colon, _ = plugin.name.partition(":")
                if own == prefix and (entry is None or colon):
                    return cast("T", plugin.load())
        if isinstance(entry, str):
            entry = self._entries[prefix] = cast("T", load_attribute(entry))
        return entry

    def usages(self) -> tuple[str, ...]:
        """List the syntax of all names, including entry points, sorted."""
        prefixes = {*self._entries, *(plugin.name for plugin in self._iter_plugins() if ":" not in plugin.name)}
        usages = {self._usages.get(p, self._usage.format(prefix=p)) for p in prefixes}
        return tuple(sorted(usages | {plugin.name for plugin in self._iter_plugins() if ":" in plugin.name}))

    def unknown(self, name: str) -> VidkinError:
        """Build the error for an unknown name, which lists the known ones."""
        article = "an" if self._noun[0] in "aeiou" else "a"
        hint = research_hint(f"{self._noun}s") if self._has_research else ""
        return self._error(
            f"{name!r} is not {article} {self._noun}; choose from {', '.join(self.usages())}"
            + (f"; {hint}" if hint else "")
        )

    def _iter_plugins(self) -> Iterator[EntryPoint]:
        # This imports an email parser, which `vidkin --help` and built-in entries do not need.
        from importlib.metadata import entry_points

        return iter(() if self._group is None else entry_points(group=self._group))


# Packages whose name differs from the name of their module.
_PACKAGES = {"PIL": "pillow", "pywt": "PyWavelets", "skimage": "scikit-image", "sklearn": "scikit-learn"}

# Optional modules that modules of vidkin import at the top, and the extra that installs each.
_EXTRAS = {
    **dict.fromkeys(
        ("torch", "torchvision", "timm", "sklearn", "scipy", "skimage", "pywt", "onnx", "onnxscript"), "train"
    ),
    "matplotlib": "plots",
}


def import_part(module: str, *, extra: str, purpose: str = "") -> Any:
    """Import a module of an optional package.

    Args:
        module: Name of the module, such as ``sklearn.cluster``.
        extra: The extra of vidkin that installs its package.
        purpose: Feature that needs the package, as the start of the message: ``"training"``.

    Raises:
        MissingPartError: The package is not installed; the message names the extra.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        top = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != top:
            raise
        raise _missing_error(top, extra, purpose) from error


@contextmanager
def name_missing_parts(purpose: str = "") -> Iterator[None]:
    """Turn a failed import of an optional package inside the block into an error with the install command.

    Use it around imports of the training packages, whose modules import torch at the top; a basic installation lacks
    torch.

    Args:
        purpose: Feature that needs the package, as the start of the message: ``"training"``.

    Raises:
        MissingPartError: A package of an extra is not installed. Other import errors are raised unchanged.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = missing_part(error, purpose)
        if missing is None:
            raise
        raise missing from error


def missing_part(error: ModuleNotFoundError, purpose: str = "") -> MissingPartError | None:
    """Build the error for a failed import of an optional package; None if no extra of vidkin installs the module.

    Args:
        error: The failed import.
        purpose: Feature that needs the package, as the start of the message: ``"training"``.
    """
    top = (error.name or "").partition(".")[0]
    return _missing_error(top, _EXTRAS[top], purpose) if top in _EXTRAS else None


def _missing_error(module: str, extra: str, purpose: str) -> MissingPartError:
    package = _PACKAGES.get(module, module)
    subject = f"{purpose} needs {package}, which" if purpose else package
    return MissingPartError(f"{subject} is not installed; install it with: {install_command(extra)}")


def missing_scale(subject: str) -> MissingPartError | None:
    """Build the error for a feature that needs the package vidkin-scale; None if the package is installed.

    Args:
        subject: Feature that needs the package, as the start of the message: ``"an index at an address"``.
    """
    return _package_error("vidkin-scale", subject)


def missing_research(subject: str) -> MissingPartError | None:
    """Build the error for a feature that needs the package vidkin-research; None if the package is installed.

    Args:
        subject: Feature that needs the package, as the start of the message: ``"vidkin benchmark"``.
    """
    return _package_error("vidkin-research", subject)


def _package_error(package: Literal["vidkin-research", "vidkin-scale"], subject: str) -> MissingPartError | None:
    if importlib.util.find_spec(package.replace("-", "_")) is not None:
        return None
    return MissingPartError(
        f"{subject} needs the package {package}, which is not installed; install it with: "
        f"{install_command(package=package)}"
    )


def research_hint(noun: str = "entries") -> str:
    """Return a hint to install vidkin-research; empty if it is installed.

    Args:
        noun: Plural noun for the entries that the package adds.
    """
    if importlib.util.find_spec("vidkin_research") is not None:
        return ""
    return f"more {noun} come with the package vidkin-research: run {install_command(package='vidkin-research')}"
