"""Run the command line as ``python -m vidkin``, for when the ``vidkin`` script is not on the PATH."""

from __future__ import annotations

from vidkin.cli import main

if __name__ == "__main__":
    main()
