"""Atomic file writes, TOML, name parsing, registries and file extensions, used by all other packages."""
