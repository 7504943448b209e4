"""``vidkin shots``: its options, the search for shots, and what it prints."""
