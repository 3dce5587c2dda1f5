"""Page Plan."""
