"""Commands that train, fit, judge and use models."""
