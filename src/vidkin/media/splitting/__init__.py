"""Split a video into pieces: at key frames without encoding, or exactly, with a few frames encoded."""
