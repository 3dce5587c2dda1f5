"""Pages of docs/ that are made by code, and what only they need."""
