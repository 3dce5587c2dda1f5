"""Page Playground."""
