"""Page Control room."""
