"""The learned match verifier: training pairs on three levels, order-preserving losses, and calibration."""
