"""Commands on videos and on an index of them."""
