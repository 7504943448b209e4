"""What a classifier with an embedding head is used for: naming files with their nearest training items, evaluation."""
