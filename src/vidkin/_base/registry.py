"""Registries: look up an entry by its prefix; other packages can add entries through entry points."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar, cast

from vidkin._base.names import load_attribute
from vidkin._base.parts import research_hint
from vidkin.errors import InvalidArgumentError, VidkinError

__all__ = ["Registry"]

T = TypeVar("T")


class Registry(Generic[T]):
    """Entries by prefix, loaded when they are first needed.

    Args:
        noun: Singular noun for an entry, for messages: ``"extractor"``.
        entries: Prefix to an entry, or to ``"package.module:attribute"``, so that nothing heavy is imported early.
        usages: Prefix to the way a name with it is written, for lists and messages: ``"timm:<model>"``.
        usage: How names with all other prefixes are written, with ``{prefix}`` as the placeholder.
        group: Entry point group in which other packages list their entries; built-in entries take precedence. The name
            of an entry point is a prefix, or how a name with it is written: ``"prefix:<model>"``. The latter also adds
            the names with an address to a built-in prefix that is written without one.
        researched: Whether vidkin-research brings more, which messages say while it is not installed.
        error: The class of the error for an unknown name.
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
        self._researched = researched
        self._error = error

    def __contains__(self, prefix: object) -> bool:
        """Whether this prefix is built in or registered; entry points are not checked."""
        return prefix in self._entries

    def register(self, prefix: str, entry: T, *, usage: str | None = None) -> None:
        """Add an entry.

        Args:
            prefix: Letters, digits, ``_`` and ``-``.
            entry: The entry that `find` returns for it.
            usage: How a name with this prefix is written; default: the common pattern.

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
        """The entry of a prefix, loaded; None if there is none.

        Args:
            prefix: The first part of a name.
            addressed: Whether an address follows it in the name, as in ``prefix:address``.
        """
        entry = self._entries.get(prefix)
        adds_addresses = addressed and self._usages.get(prefix, prefix) == prefix
        if entry is None or adds_addresses:
            for plugin in self._plugins():
                own, colon, _ = plugin.name.partition(":")
                if own == prefix and (entry is None or colon):
                    return cast("T", plugin.load())
        if isinstance(entry, str):
            entry = self._entries[prefix] = cast("T", load_attribute(entry))
        return entry

    def usages(self) -> tuple[str, ...]:
        """How all names are written, entry points included, sorted."""
        prefixes = {*self._entries, *(plugin.name for plugin in self._plugins() if ":" not in plugin.name)}
        usages = {self._usages.get(p, self._usage.format(prefix=p)) for p in prefixes}
        return tuple(sorted(usages | {plugin.name for plugin in self._plugins() if ":" in plugin.name}))

    def unknown(self, name: str) -> VidkinError:
        """Build the error for an unknown name; it lists the known ones."""
        article = "an" if self._noun[0] in "aeiou" else "a"
        hint = research_hint(f"{self._noun}s") if self._researched else ""
        return self._error(
            f"{name!r} is not {article} {self._noun}; choose from {', '.join(self.usages())}"
            + (f"; {hint}" if hint else "")
        )

    def _plugins(self) -> Iterator[importlib.metadata.EntryPoint]:
        return iter(() if self._group is None else importlib.metadata.entry_points(group=self._group))
