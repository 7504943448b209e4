"""Shot detectors from publications and other tools, for comparison."""
