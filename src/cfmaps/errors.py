"""Errors with a meaning of their own; every other wrong call is a ValueError or TypeError."""

from cfmaps._core import CorruptMap

__all__ = ["CorruptMap", "NotConfirmed", "UnsupportedModel"]


class UnsupportedModel(ValueError):
    """The model cannot be read exactly; the message says why."""


class NotConfirmed(RuntimeError):
    """The model's own ``predict`` disagrees with an answer; the message shows the row."""
