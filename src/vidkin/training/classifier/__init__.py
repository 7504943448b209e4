"""Classifiers with an embedding head in use: classes of files with their nearest training items, and evaluation."""
