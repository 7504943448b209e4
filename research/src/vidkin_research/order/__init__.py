"""Which loss trains the better frame encoder and the better verifier, on three levels and footage never seen."""
