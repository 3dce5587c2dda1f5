"""The controllers inside other people's trainers. Nothing is imported until it is asked for by name.

entrostat.integrations.trl     a GRPOTrainer of TRL that takes controllers
entrostat.integrations.verl    policy losses of verl, one for each controller
"""
