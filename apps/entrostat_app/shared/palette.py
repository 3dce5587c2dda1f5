"""Colours that colour-blind people can distinguish, each with its own dash, so that no picture depends on colour."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d1f", "#7f7f7f")
"""Okabe and Ito's colours without black and yellow, which are hard to see on dark and light backgrounds."""
DASHES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3), (4, 4), (10, 2), (1, 3), (6, 2, 1, 2, 1, 2))
"""Dash patterns: lengths on and off in pixels, solid first."""
