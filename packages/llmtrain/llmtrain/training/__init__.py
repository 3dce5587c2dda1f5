"""Training: loop, experience, updates, supervised warm-up, configuration checks and logs."""
