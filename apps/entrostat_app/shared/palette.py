"""Colours that colour-blind people tell apart, each with a dash of its own, so that no picture needs colour."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d1f", "#7f7f7f")
"""Okabe and Ito's, without black and yellow, which vanish on dark and on light."""
DASHES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3), (4, 4), (10, 2), (1, 3), (6, 2, 1, 2, 1, 2))
"""Solid first; on and off, in pixels."""
