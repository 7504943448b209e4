"""What is done with duplicates: a plan, steps with a log, and the way back."""
