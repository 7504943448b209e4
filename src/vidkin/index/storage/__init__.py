"""What an index keeps of each video, and where."""
