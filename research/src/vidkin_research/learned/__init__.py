"""Shot detection with a trained metric: windows of frames, the curve of their distances, and rules fitted to labels."""
