"""See the architecture page of the documentation."""
