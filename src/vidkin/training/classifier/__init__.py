"""Use of classifiers with an embedding head: classes of files with their nearest training items, and evaluation."""
