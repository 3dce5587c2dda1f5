"""The page Theorems."""
