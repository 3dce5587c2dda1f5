"""Diagnosis of one run from its metrics, and advice that names its evidence.

    facts = measure(metrics, config)            metrics of a run log, or of another trainer's log
    sections(facts), advise(facts)              sentences, and settings to paste

facts.py            quantities measured from the metrics
rules.yaml          advice: its condition, its evidence, its price, what would change it
evidence.json       results of the committed studies, made by `python benchmarks/evidence.py`
evidence.py         results that a rule refers to
advice.py           rules that apply to the facts
pasted.py           settings of a controller for TRL, verl and llmtrain
words.py            facts and advice as sentences and as text
"""
