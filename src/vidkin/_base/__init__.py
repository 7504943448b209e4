"""Atomic files, TOML, names, registries, file extensions; what every other package uses."""
