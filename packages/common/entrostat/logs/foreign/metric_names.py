"""Names of metrics: those of other trainers, and entrostat's for the same quantity.

    translate(["actor/entropy", "critic/score/mean", "mine"])
        {"actor/entropy": "entropy", "critic/score/mean": "reward"}

A metric that has no line in NAMES keeps its name.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from .rows import spelled
from .units import in_nats, nats, unit

NAMES: dict[str, dict[str, str]] = {
    "entropy": {
        "actor/entropy": "verl",
        "entropy_loss": "OpenRLHF (before its sign and coefficient); slime",
        "actor/entropy_loss": "verl, older",
        "policy/entropy_avg": "TRL's PPO",
        "policy/policy_entropy": "SkyRL",
        "approx_entropy": "NeMo-RL",
        "Entropy": "prime-rl's console",
        "entropy/mean": "prime-rl; ms-swift",
        "policy/entropy": "Tinker",
        "optim/entropy": "Tinker's cookbook",
        "trainer/entropy/mean": "torchtitan",
        "ppo_actor/update/entropy/avg": "AReaL",
        "policy_entropy": "several",
        "mean_entropy": "several",
        "avg_entropy": "several",
        "token_entropy": "several",
    },
    "reward": {
        "critic/score/mean": "verl",
        "rollout/reward_mean": "OpenRLHF",
        "critic/rewards/mean": "verl (less its KL penalty)",
        "rewards/mean": "several",
        "objective/scores": "TRL's PPO",
        "reward/avg_raw_reward": "SkyRL",
        "reward/mean": "prime-rl",
        "Reward": "prime-rl's console",
        "rollout/raw_reward": "slime",
        "env/all/reward/total": "Tinker's cookbook",
        "episode/reward/mean": "verl-agent",
        "reward/overall": "EasyR1",
        "rollout_reward/_mean": "torchtitan",
        "ppo_actor/task_reward/avg": "AReaL",
        "ppo_actor/final_reward/avg": "AReaL (with its penalties)",
        "mean_reward": "several",
        "reward_mean": "several",
        "avg_reward": "several",
    },
    "response_length": {
        "response_length/mean": "verl",
        "completions/mean_length": "TRL",
        "completion_length": "TRL, older; ms-swift",
        "rollout/response_length_mean": "OpenRLHF",
        "rollout/response_lengths": "slime",
        "rollout/response_len/mean": "slime",
        "env/all/ac_tokens_per_turn": "Tinker's cookbook",
        "response_len/mean": "XTuner",
        "rollout/response_length/mean": "torchtitan",
        "avg_response_token_length": "several",
        "avg_response_length": "several",
        "mean_response_length": "several",
    },
    "response_length/max": {"completions/max_length": "TRL"},
    "clip_fraction": {
        "actor/pg_clipfrac": "verl",
        "clip_ratio/region_mean": "TRL",
        "ppo_clip_ratio": "OpenRLHF",
        "pg_clipfrac": "slime",
        "loss/ratio_clipped_frac": "torchtitan",
        "ppo_actor/update/clip_ratio/avg": "AReaL",
    },
    "clip/high": {"clip_ratio/high_mean": "TRL"},
    "clip/low": {"clip_ratio/low_mean": "TRL"},
    "clip/dual": {"actor/pg_clipfrac_lower": "verl"},
    "kl_to_rollout": {"actor/ppo_kl": "verl", "ppo_kl": "OpenRLHF"},
    "mismatch/kl": {"rollout_corr/kl": "verl", "vllm_kl": "OpenRLHF", "Mismatch KL": "prime-rl's console"},
    "mismatch/logp_gap": {
        "sampling/sampling_logp_difference/mean": "TRL",
        "rollout_corr/log_ppl_abs_diff": "verl",
        "train_rollout_logprob_abs_diff": "slime",
        "bit_wise/logprob_diff/abs_mean": "torchtitan",
    },
    "mismatch/probs_diff": {"training/rollout_probs_diff_mean": "verl"},
    "groups/no_signal": {"frac_reward_zero_std": "TRL", "rollout_reward/group_zero_std_frac/mean": "torchtitan"},
    "groups/mixed": {
        "env/all/by_group/frac_mixed": "Tinker's cookbook",
        "batch/effective_batch_size": "prime-rl",
        "batch/solve_partial": "rLLM",
    },
    "groups/all_right": {"batch/solve_all": "rLLM; prime-rl"},
    "groups/all_wrong": {"batch/solve_none": "rLLM; prime-rl"},
    "solved": {"episode/success_rate": "verl-agent", "success_rate": "several"},
    "reward/std": {"reward_std": "TRL", "std_reward": "several"},
    "advantage/max": {"critic/advantages/max": "verl", "advantages/max": "XTuner"},
    "advantage/min": {"critic/advantages/min": "verl", "advantages/min": "XTuner"},
    "advantage/std": {"advantages/std": "several", "adv_std": "several", "std_advantage": "several"},
    "truncated": {
        "completions/clipped_ratio": "TRL",
        "response_length/clip_ratio": "verl",
        "rollout/truncated": "slime",
        "rollout/truncated_ratio": "slime",
        "rollout/truncation_rate/mean": "torchtitan",
    },
    "loss": {
        "actor/loss": "verl",
        "Loss": "prime-rl's console",
        "loss/mean": "torchtitan",
        "ppo_actor/update/actor_loss/avg": "AReaL",
    },
    "grad_norm": {
        "actor/grad_norm": "verl",
        "actor_grad_norm": "OpenRLHF",
        "Grad. Norm": "prime-rl's console",
        "trainer/grad_norm/mean": "torchtitan",
        "ppo_actor/update/grad_norm": "AReaL",
    },
    "lr": {
        "learning_rate": "TRL",
        "actor/lr": "verl",
        "actor_lr": "OpenRLHF",
        "lr-pg_0": "slime",
        "trainer/lr": "torchtitan",
        "ppo_actor/update/lr": "AReaL",
    },
    "time/step": {
        "timing_s/step": "verl",
        "perf/time_per_step": "verl",
        "step_time": "TRL",
        "timing/step_total": "OpenRLHF",
    },
    "eval/avg@{k}": {
        "val-core/{source}/acc/mean@{k}": "verl",
        "val-core/{source}/reward/mean@{k}": "verl, if its reward function returns no acc",
    },
    "eval/avg@1": {"val/test_score/{source}": "verl, older"},
    "eval/pass@{k}": {
        "val-core/{source}/acc/best@{k}/mean": "verl (by bootstrap, below the unbiased estimate)",
        "val-aux/{source}/acc/best@{k}/mean": "verl",
        "val-core/{source}/reward/best@{k}/mean": "verl, if its reward function returns no acc",
        "eval_{source}_pass{k}": "OpenRLHF",
        "eval/eval_{source}_pass{k}": "OpenRLHF in W&B and TensorBoard",
    },
    "eval/maj@{k}": {
        "val-core/{source}/acc/maj@{k}/mean": "verl",
        "val-aux/{source}/acc/maj@{k}/mean": "verl",
    },
    "eval/entropy": {"eval_entropy": "TRL"},
    "eval/length": {
        "eval_completions/mean_length": "TRL",
        "eval/completions/mean_length": "TRL in W&B and TensorBoard",
        "eval_response_length_mean": "OpenRLHF",
        "eval/eval_response_length_mean": "OpenRLHF in W&B and TensorBoard",
    },
}
"""Trainers that use a name, by entrostat's name and theirs. Of several names in one file the first counts.

Names that equal entrostat's, such as TRL's entropy and reward, need no line. Each may have `train/` in front, as W&B
and TensorBoard get it from TRL and OpenRLHF, and _ for each /, as in tables: actor_entropy is actor/entropy. Tables
that people write have words: Response Length is response_length. The entropy may have its unit in its name, as in
entropy_nats; one in bits counts if there is no other.
`{source}` is a data set: entrostat's names have it, as in eval/aime/avg@8, if a file has several.
"""
LOOKS_LIKE = {
    "entropy": re.compile(r"entrop"),
    "reward": re.compile(r"reward|score|return"),
    "mismatch/logp_gap": re.compile(r"(?:prob|logp).*diff|diff.*(?:prob|logp)|mismatch"),
}
"""Parts of names, in small letters, of metrics that may be one of entrostat's."""
OF_THE_ACTOR = re.compile(r"(?:train/)?(?:actor|policy)/(?:.+/)?(?:mean_|avg_|token_)?entropy")
"""Names that are the policy's entropy if no other metric of a run may be it, such as actor/main_chain/entropy."""
NO_LEVEL = {
    *("std", "min", "max", "var", "median", "coef", "coeff", "coefficient", "target", "alpha", "weight", "advantage"),
    *("advantages", "time", "timing", "length", "eval", "val", "test"),
}
"""Words in names of what is no level of a quantity in training: spreads, settings and evaluations."""
ENTROPY_HELP = "logged metric that is the policy's entropy, in nats unless its name says bits"
"""Help of the option that names it."""
FLAT = ("", "train_")
"""Beginnings of the names in tables."""
PLACES = {"{source}": "(?P<source>.+)", "{k}": r"(?P<k>\d{1,6})"}


def translate(names: Iterable[str]) -> dict[str, str]:
    """Return entrostat's name for each of the names of one run that has one; no two get the same.

    The order of NAMES decides which of several counts, and not the order of the names.
    """
    there = list(dict.fromkeys(names))
    matches = [(ours, name, found) for ours, name, found in _matches(there)]
    several = len({found["source"] for _, _, found in matches if found.get("source")}) > 1
    translated: dict[str, str] = {}
    taken = set[str]()
    for pattern, name, found in matches:
        ours = pattern.replace("{k}", found.get("k", ""))
        if several and found.get("source"):
            ours = ours.replace("eval/", f"eval/{found['source']}/", 1)
        if ours not in taken and name not in translated:
            translated[name] = ours
            taken.add(ours)
    if "entropy" not in taken and len(alone := candidates("entropy", there)) == 1 and OF_THE_ACTOR.fullmatch(alone[0]):
        translated[alone[0]] = "entropy"
    return translated


def candidates(ours: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the names, sorted, that look as if they were entrostat's metric `ours`, one of LOOKS_LIKE."""
    small = ((name, name.lower()) for name in names)
    return tuple(
        sorted(
            name
            for name, low in small
            if LOOKS_LIKE[ours].search(low) and NO_LEVEL.isdisjoint(re.split("[^a-z0-9]+", low))
        )
    )


def wrote(names: Iterable[str]) -> str:
    """Return which of TRL and verl uses most of these names of a log; empty if neither uses one."""
    users = [user for theirs in NAMES.values() for name, user in theirs.items() if name in set(names)]
    counts = {trainer: sum(user.startswith(trainer) for user in users) for trainer in ("TRL", "verl")}
    most = max(counts, key=lambda trainer: counts[trainer])
    return most if counts[most] else ""


def _matches(names: Sequence[str]) -> list[tuple[str, str, dict[str, str]]]:
    """Return entrostat's name, the file's, and its parts, in the order of NAMES; entrostat's own names come first."""
    found, flat = [], []
    plain = defaultdict[str, list[str]](list)
    for name in names:
        plain[spelled(name)].append(name)
    for ours, theirs in NAMES.items():
        for pattern in map(_pattern, (ours, *theirs)):
            for prefix in ("", "train/"):
                matching = ((name, pattern.fullmatch(name.removeprefix(prefix))) for name in names)
                found += [
                    (ours, name, match.groupdict())
                    for name, match in matching
                    if match and name.startswith(prefix) and (prefix or not name.startswith("train/"))
                ]
        as_flat = [f"{start}{one.replace('/', '_')}" for one in (ours, *theirs) if "{" not in one for start in FLAT]
        flat += [(ours, name, dict[str, str]()) for one in as_flat for name in plain.get(one, ())]
    return found + flat + _with_unit(names)


def _with_unit(names: Sequence[str]) -> list[tuple[str, str, dict[str, str]]]:
    """Return the entropies with a unit in their names, as `_matches` does; those in nats come first."""
    plain = {name: found.plain for name in sorted(names, key=lambda name: (nats(name), name)) if (found := unit(name))}
    ranks = (
        {one: at for at, (ours, one, _) in enumerate(_matches([*plain.values()])) if ours == "entropy"} if plain else {}
    )
    known = [name for name, one in plain.items() if one in ranks]
    return [
        ("entropy", name, {}) for name in sorted(known, key=lambda name: (nats(name) != 1, ranks[plain[name]], name))
    ]


@cache
def _pattern(name: str) -> re.Pattern[str]:
    parts = re.split(r"(\{source\}|\{k\})", name)
    return re.compile("".join(PLACES.get(part) or re.escape(part) for part in parts))


def page() -> str:
    """Return NAMES as a Markdown table, a row for each name of another trainer."""
    lines = ["| entrostat | other trainer | of |", "|---|---|---|"]
    for ours, theirs in NAMES.items():
        cells = [f"`{ours}`", *[""] * (len(theirs) - 1)]
        lines += [f"| {cell} | `{name}` | {of} |" for cell, (name, of) in zip(cells, theirs.items(), strict=True)]
    return "\n".join(lines) + "\n"


def renamed(run: str, metrics: Sequence[Mapping[str, Any]], named: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the steps of a run with metrics that a user names by entrostat's names, {ours: theirs}, under those.

    A step without the named metric has none, also if another was read as it. Entropies are in nats, by `units.nats`.
    Raises ValueError for a name that the run has not logged.
    """
    logged = sorted(set[str]().union(*metrics) - {"step"})
    for name in named.values():
        if name not in logged:
            raise ValueError(f"{run} has logged no {name!r}; its metrics: {', '.join(logged) or 'none'}")
    units = {ours: nats(name) if ours == "entropy" else 1.0 for ours, name in named.items()}
    return [
        {
            **{name: value for name, value in line.items() if name not in named},
            **{ours: in_nats(line[name], units[ours]) for ours, name in named.items() if name in line},
        }
        for line in metrics
    ]
