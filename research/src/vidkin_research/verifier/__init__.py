"""The learned verifier of matches: material in three levels, training with order-preserving losses, calibration."""
