"""Training that can be interrupted: checkpoints, Ctrl-C between two steps, and steps that resume."""
