"""What can go wrong that a caller may want to catch by name."""


class UnsupportedModel(ValueError):
    """The model cannot be read exactly; the message names the reason."""
