"""The command that shows an index in a browser."""
