"""The page Quadrants."""
