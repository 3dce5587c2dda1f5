"""Sweeps: a grid of environments, controllers, hyperparameters, targets and seeds, and one parquet with a row a run.

grid ► cells (one run each) ► calls (cells that one simulation takes side by side) ► parts ► sweep.parquet
"""
