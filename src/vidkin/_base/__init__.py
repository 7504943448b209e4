"""Room _base: atomic files, TOML, names, registries, file extensions; what every room stands on."""
