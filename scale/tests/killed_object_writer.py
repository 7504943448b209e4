"""A process that writes to an index on object storage until test_object_storage.py kills it."""

from __future__ import annotations

import sys

from tests.index.ingest.killed_writer import write
from vidkin.index import open_place
from vidkin_scale.lance_store import LanceStore

if __name__ == "__main__":
    place = open_place(sys.argv[1])
    with place.exclusive():
        store = LanceStore(place)
        sys.stdout.write("writing\n")
        sys.stdout.flush()
        write(store)
