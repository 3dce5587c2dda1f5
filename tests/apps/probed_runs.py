"""Runs with answers to probes, written by hand: at step 20 the answers of run b part from those of run a."""

from pathlib import Path

from entrostat.logs.runlog import RunLog

SAID = {"a": {0: "1+2", 10: "1+2", 20: "1+2"}, "b": {0: "1+2", 10: "1+3", 20: "1-4"}}
"""First answer of each run at each step; the second answer is always 2+2."""


def write(folder: Path, *, evil: str = "") -> None:
    """Write two runs with two questions of two answers each; evil: text of one more token in the first run."""
    for name, said in SAID.items():
        log = RunLog(folder / name, {"steps": 20, "controller": name}, seed=0)
        for step, text in said.items():
            log.log(step, {"entropy": 1.0, "reward": 0.5})
            answers = []
            for probe in range(2):
                for sample, response in enumerate((text, "2+2")):
                    tokens = [*response, "<eos>", *([evil] if evil and name == "a" else [])]
                    count = range(len(tokens))
                    numbers = {
                        "logp": [-0.5 for _ in count],
                        "entropy": [0.1 * i for i in count],
                        "advantage": [1.0 - 2 * sample for _ in count],
                        "weight": [0.0 if i == 2 else 1.0 for i in count],
                    }
                    known = {"prompt": f"make {probe}", "response": response, "reward": float(1 - sample)}
                    answers.append({"probe": probe, "sample": sample, **known, "tokens": tokens, **numbers})
            log.probes(step, answers)
        log.close()
