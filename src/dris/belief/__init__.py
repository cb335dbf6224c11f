"""Belief: what is seen keeps the instances of a set true to the one that is real."""
