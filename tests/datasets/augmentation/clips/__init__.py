"""Tests of the augmentation of clips."""
