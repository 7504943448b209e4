"""Atomic files, TOML, names, registries and file extensions, used by all other packages."""
