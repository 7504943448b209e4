"""Networks that classify and embed at once."""
