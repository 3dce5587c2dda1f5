"""Integrations of the controllers into other trainers. Import their modules by name; this package imports none.

entrostat.integrations.prime_rl   custom loss for prime-rl
entrostat.integrations.trl        TRL's GRPOTrainer with controllers
entrostat.integrations.verl       policy losses for verl, one per controller
"""
