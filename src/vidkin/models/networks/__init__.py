"""The networks that models are made of."""
