"""Evaluation as the papers do it: outcomes, diversity, calibration, and how entropy goes with them."""
