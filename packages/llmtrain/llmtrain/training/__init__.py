"""Training: the loop, experience, updates, supervised warm-up, checks and logs of a run."""
