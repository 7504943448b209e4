"""Training of a clip encoder's head on labeled shots."""
