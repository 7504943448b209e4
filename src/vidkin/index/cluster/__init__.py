"""Work on many machines with Ray: describing files, behind the contract of an executor."""
