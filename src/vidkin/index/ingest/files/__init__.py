"""Files in folders: which ones to index, and hashes of their content."""
