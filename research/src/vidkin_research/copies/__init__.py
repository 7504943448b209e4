"""The copy benchmark: edit videos in many ways, search for the copies, and compare with the ground truth."""
