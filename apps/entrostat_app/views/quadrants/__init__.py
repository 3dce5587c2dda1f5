"""Page Quadrants."""
