"""Published shot detectors and those of other tools, as baselines."""
