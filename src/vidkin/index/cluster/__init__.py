"""Work on many machines with Ray: extracting features and scoring candidates."""
