"""Forecast of the order of rules in a language model: an environment fitted to one run, and every rule run in it.

observed (start and first steps of a run) ► fit (environments like it) ► outlook (each rule's held-out results)
"""
