"""Training of a comparator on unlabeled videos: windows, views, batches and objective."""
