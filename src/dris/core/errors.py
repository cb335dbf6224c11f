"""What can go wrong, under one base."""


class DrisError(Exception):
    """Base of the errors that dris raises itself; values that are refused at the edges are ValueErrors."""
