"""Sweeps: a grid of environments, controllers, hyperparameters, targets and seeds, run into one table, a row per run.

grid ► cells (one run each) ► calls (cells that share one simulation) ► parts ► sweep.parquet
"""
