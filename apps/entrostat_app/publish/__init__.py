"""Self-contained HTML pages for any static host: what the explorer draws, computed beforehand."""
