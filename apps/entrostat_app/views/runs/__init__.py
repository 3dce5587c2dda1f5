"""Page Runs."""
