"""The files in folders: which are taken, and what is in them."""
