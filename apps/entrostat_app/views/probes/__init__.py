"""Page Probes."""
