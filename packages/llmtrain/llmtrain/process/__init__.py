"""Processes and devices: ranks, launching them, clocks, progress bars, GPU memory."""
