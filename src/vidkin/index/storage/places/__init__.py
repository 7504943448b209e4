"""Where the files of an index are: a folder of this machine, or a prefix on object storage."""
