"""One file a page: its addresses, and the HTTP API behind it."""
