"""Networks that classify and embed in one pass."""
