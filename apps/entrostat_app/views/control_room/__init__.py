"""The page Control room."""
