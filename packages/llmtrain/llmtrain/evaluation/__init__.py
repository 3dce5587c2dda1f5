"""Evaluation as in the papers: outcomes, diversity, calibration, and their correlation with entropy."""
