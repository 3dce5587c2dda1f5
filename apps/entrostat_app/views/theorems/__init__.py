"""Page Theorems."""
