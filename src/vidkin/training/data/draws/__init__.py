"""Which items each step of a training draws."""
