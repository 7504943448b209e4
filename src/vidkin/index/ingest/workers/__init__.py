"""Making features of files in processes of this machine, and the contract of what does."""
