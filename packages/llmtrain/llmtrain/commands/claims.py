"""`llmtrain claims`: ask the papers' claims in a language model, beside the bandit's verdicts.

    llmtrain claims                                                    all claims, about 40 minutes on one CPU core
    llmtrain claims four-quadrants token-flow --model.path runs/countdown/checkpoints/step-160
    llmtrain claims --only 'clip*' --out runs/claims --json
    llmtrain claims --threads 1 --page docs/claims_lm.md

Runs and token updates that are in --out already are kept, so the claims can be asked one after another, and a stopped
command resumes. The other flags are those of train, on a short form of the preset countdown-cpu.
"""

import shlex
import sys
from itertools import takewhile
from pathlib import Path

from entrostat.settings.commandline import Arguments

from ..settings.config import TrainConfig
from ..settings.presets import read_config

PROG = "llmtrain claims"


def main(args: list[str]) -> int:
    """Measure claims in a language model and print their verdicts; exit code 0, whatever the verdicts."""
    parser = Arguments(
        prog=PROG,
        description=__doc__,
        usage=f"{PROG} [NAME ...] [--only PATTERN] [--seeds N] [--workers N] [--json] [--page FILE] FLAGS OF TRAIN",
    )
    parser.add_argument("--only", default="", help="claims with this in their name; * and ? as in a shell")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each kind, from seed 0 (3)")
    parser.add_argument("--workers", type=int, default=1, help="parallel runs; more than one only on CPUs (1)")
    parser.add_argument("--json", action="store_true", help="print JSON, and the lines on standard error")
    parser.add_argument("--page", type=Path, help="Markdown file to write, with its measurements in a folder beside it")
    parser.add_argument("--bandit", type=Path, help="claims.json of toybandit verify (docs/theory/claims.json)")
    names = list(takewhile(lambda word: not word.startswith("-"), args))
    given, rest = parser.parse_known_args(args[len(names) :])
    from ..studies import claim_measurements, claims_page
    from ..studies.claim_registry import CLAIMS, errors_of_interval
    from ..training.check import check

    chosen = CLAIMS.choose(names, given.only)
    if given.seeds < 2:
        raise ValueError(f"--seeds must be at least 2, as intervals need; got {given.seeds}")
    if given.workers < 1:
        raise ValueError(f"--workers must be at least 1; got {given.workers}")
    if given.bandit and not given.bandit.exists():
        raise ValueError(f"--bandit {given.bandit} does not exist: write it with toybandit verify --out FOLDER")
    base = read_config(rest, PROG, f"{PROG} --only 'clip*'", base=claim_measurements.setting())
    if base.controller != TrainConfig.controller or base.controller_args:
        raise ValueError(f"{PROG} chooses controllers and their hyperparameters: leave --controller and --set out")
    check(base)
    needs = {need for claim in chosen for need in claim.needs}
    measured = claim_measurements.measure(base, needs, given.seeds, given.workers)
    told = sys.stderr if given.json else sys.stdout
    records = [claim(measured, power=True) for claim in chosen]
    print(*map(claims_page.line, records), claims_page.summary(records), sep="\n", file=told)
    if given.json:
        print(claims_page.as_json(records))
    if given.page:
        folder = given.page.with_suffix("")
        claim_measurements.save(measured, folder / "measured.json.gz")
        (folder / "claims.json").write_text(claims_page.as_json(records) + "\n")
        text = claims_page.page(
            records,
            claims_page.bandit_records(given.bandit or claims_page.BANDIT),
            f"{PROG} {shlex.join(args)}",
            folder=folder.name,
            seeds=given.seeds,
            width=errors_of_interval(given.seeds),
            alone=claim_measurements.ALONE,
            rollouts=claim_measurements.ROLLOUTS,
            small=claim_measurements.SMALL,
            **claims_page.settings_of(base),
        )
        given.page.write_text(text)
        print(given.page, file=told)
    return 0
