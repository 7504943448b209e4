"""Groups of duplicates in words, as a table and as a page."""
