"""Feature extraction in processes of this machine, and the contract of executors."""
