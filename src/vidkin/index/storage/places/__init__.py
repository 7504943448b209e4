"""Places with files: a folder of this machine, or a prefix on object storage."""
