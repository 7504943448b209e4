"""Training of a comparator on videos without labels: windows, views, batches and objective."""
