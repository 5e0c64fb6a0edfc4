"""Triton, of which the tests need that it is there."""
