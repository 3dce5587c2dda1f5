"""Controllers, surrogates and advantages against the functions of others, on the same tensors in float64.

    python benchmarks/conformity.py                 measure verl and TRL, write docs/data/conformity.json and .md
    python benchmarks/conformity.py --clones DIR    also released code: clones DIR/<repository name>, such as DIR/STEER
    python benchmarks/conformity.py --page          only write the page, from the numbers measured before

Difference of the loss: absolute. Difference of the gradients in log π and in the entropy: the largest, divided by the
largest entry of the other's gradient. Advantages: the largest difference of an advantage, and none of a gradient.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

import released_code
from comparison import LENGTH, ROUNDING, ROWS, Comparison, greedy_of, policy_of, source_of, terms_of
from installed_peers import (
    trl_loss,
    verl_advantage,
    verl_corrected,
    verl_gdpo,
    verl_loss,
    verl_optimal_token,
    verl_remax,
)
from released_code import (
    bapo_code,
    ce_gppo_code,
    clip_b_code,
    clip_v_code,
    dcpo_code,
    entrocraft_code,
    epo_code,
    prime_rl_advantage,
    prime_rl_ipo_code,
    steer_code,
)

from entrostat.about.description import names

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "docs/data/conformity.json", ROOT / "docs" / "conformity.md"


SEQUENCES = "seq-mean-token-mean"
VERL, TRL = "verl ", "TRL GRPOTrainer, "
COMPARISONS = [
    Comparison(
        spec="ppo", settings={"dual_clip": 3.0}, peer=VERL + "compute_policy_loss_vanilla", theirs=verl_loss("vanilla")
    ),
    Comparison(
        spec="clip_higher",
        settings={"dual_clip": 10.0},
        peer=VERL + "compute_policy_loss_vanilla",
        theirs=verl_loss("vanilla", clip_ratio_low=0.2, clip_ratio_high=0.28, clip_ratio_c=10.0),
    ),
    Comparison(spec="reinforce", peer=VERL + "compute_policy_loss_gpg", theirs=verl_loss("gpg")),
    Comparison(
        spec="cispo",
        settings={"eps_low": 0.2, "eps_high": 0.2},
        peer=VERL + "compute_policy_loss_cispo",
        theirs=verl_loss("cispo"),
    ),
    Comparison(
        spec="dppo",
        peer=VERL + "compute_policy_loss_dppo_tv",
        theirs=verl_loss("dppo_tv", clip_ratio=0.15, clip_ratio_low=0.15, clip_ratio_high=0.15, clip_ratio_c=20.0),
    ),
    Comparison(
        spec="dppo_kl",
        peer=VERL + "compute_policy_loss_dppo_kl",
        theirs=verl_loss("dppo_kl", clip_ratio=0.05, clip_ratio_low=0.05, clip_ratio_high=0.05, clip_ratio_c=20.0),
    ),
    Comparison(
        spec="dro",
        settings={"beta": 0.5},
        peer=VERL + "compute_policy_loss_dro",
        theirs=verl_loss("dro", policy={"dro_beta": 0.5}),
    ),
    Comparison(
        spec="sapo",
        peer=VERL + "compute_policy_loss_sapo",
        theirs=verl_loss("sapo", tau_pos=1.0, tau_neg=1.05),
        tolerance=1e-8,
        reason="verl adds 1e-8 to the length of a response",
    ),
    Comparison(
        spec="gspo",
        settings={"eps_low": 0.1, "eps_high": 0.1},
        peer=VERL + "compute_policy_loss_gspo",
        theirs=verl_loss("gspo", SEQUENCES, clip_ratio_low=0.1, clip_ratio_high=0.1),
        tolerance=1e-8,
        reason="verl adds 1e-8 to the length of a response",
    ),
    Comparison(
        spec="gmpo",
        peer=VERL + "compute_policy_loss_geo_mean",
        theirs=verl_loss("geo_mean", clip_ratio_low=0.4, clip_ratio_high=0.4),
        tolerance=1e-8,
        reason="verl adds 1e-8 to the length of a response",
    ),
    Comparison(
        spec="clip_cov",
        settings={"k": 1.0, "omega_low": 0.2, "eps_low": 0.2, "eps_high": 0.2},
        peer=VERL + "compute_policy_loss_clip_cov",
        tolerance=1e-8,
        theirs=verl_loss("clip_cov", policy={"clip_cov_ratio": 1.0, "clip_cov_lb": 0.2, "clip_cov_ub": 5.0}),
        reason="with a budget of all candidates; the draws of a smaller one have other random numbers",
    ),
    Comparison(
        spec="kl_cov",
        settings={"k": 0.1},
        peer=VERL + "compute_policy_loss_kl_cov",
        theirs=verl_loss("kl_cov", policy={"kl_cov_ratio": 0.1, "ppo_kl_coef": 1.0}),
    ),
    Comparison(
        spec="rollout_correction",
        preset="released",
        peer=VERL + "compute_rollout_rejection_mask, token_k1",
        theirs=verl_corrected("token_k1", "0.2_2.0", mean=False),
        settings={"dual_clip": 1e9},
        reason="verl bounds π_rollout/π_old, so that its 0.2 and 2 are 0.5 and 5 here",
    ),
    Comparison(
        spec="rollout_correction",
        settings={"mode": "geometric_mask", "floor": 0.8, "cap": 1.25},
        peer=VERL + "compute_rollout_rejection_mask, seq_mean_k1",
        tolerance=1e-8,
        theirs=verl_corrected("seq_mean_k1", "0.8_1.25", mean=True),
    ),
    Comparison(
        spec="grpo",
        peer=VERL + "compute_grpo_outcome_advantage",
        theirs=verl_advantage("compute_grpo_outcome_advantage"),
    ),
    Comparison(
        spec="dr_grpo",
        peer=VERL + "compute_grpo_outcome_advantage",
        theirs=verl_advantage("compute_grpo_outcome_advantage", norm_adv_by_std_in_grpo=False),
    ),
    Comparison(
        spec="rloo",
        peer=VERL + "compute_rloo_outcome_advantage",
        theirs=verl_advantage("compute_rloo_outcome_advantage"),
    ),
    Comparison(
        spec="opo", peer=VERL + "compute_opo_outcome_advantage", theirs=verl_advantage("compute_opo_outcome_advantage")
    ),
    Comparison(
        spec="pass_at_k k=2 variant=best",
        peer=VERL + "compute_grpo_passk_outcome_advantage",
        theirs=verl_advantage("compute_grpo_passk_outcome_advantage", config={}),
    ),
    Comparison(
        spec="reinforce_pp",
        peer=VERL + "compute_reinforce_plus_plus_baseline_outcome_advantage",
        theirs=verl_advantage("compute_reinforce_plus_plus_baseline_outcome_advantage"),
        tolerance=1e-8,
        reason="verl adds 1e-8 to the number of tokens; a group of one has no baseline there, advantage 0 here",
    ),
    Comparison(spec="remax", peer=VERL + "compute_remax_outcome_advantage", theirs=verl_remax, told=greedy_of),
    Comparison(
        spec="optimal_token",
        peer=VERL + "compute_optimal_token_baseline_advantage",
        theirs=verl_optimal_token,
        told=policy_of,
        tolerance=1e-7,
        reason="verl adds 1e-8 to the sum of the weights, which are smaller where tokens are certain",
    ),
    Comparison(
        spec="gdpo",
        peer=VERL + "compute_gdpo_outcome_advantage",
        theirs=verl_gdpo,
        told=terms_of,
        tolerance=1e-6,
        reason="verl holds the rewards in float32",
    ),
    Comparison(spec="ppo", peer=TRL + "loss_type dapo or bnpo", theirs=trl_loss()),
    Comparison(
        spec="ppo", settings={"aggregation": SEQUENCES}, peer=TRL + "loss_type grpo", theirs=trl_loss(loss_type="grpo")
    ),
    Comparison(
        spec="ppo",
        settings={"aggregation": "fixed", "constant": float(ROWS * LENGTH)},
        peer=TRL + "loss_type dr_grpo",
        theirs=trl_loss(loss_type="dr_grpo"),
    ),
    Comparison(spec="ppo", settings={"dual_clip": 1.5}, peer=TRL + "delta", theirs=trl_loss(delta=1.5)),
    Comparison(
        spec="ppo",
        settings={"eps_high": 0.1, "dual_clip": 1.2},
        peer=TRL + "delta below 1 + epsilon_high",
        theirs=trl_loss(delta=1.1),
        reason="TRL's δ = 1.1 then bounds the ratio if A > 0, and 1 + epsilon_high = 1.2 if A < 0",
    ),
    Comparison(
        spec="gspo",
        settings={"eps_low": 0.1, "eps_high": 0.1},
        peer=TRL + "importance_sampling_level sequence",
        theirs=trl_loss(loss_type="grpo", importance_sampling_level="sequence", epsilon_low=0.1, epsilon_high=0.1),
    ),
    Comparison(
        spec="gspo",
        settings={"eps_low": 0.1, "eps_high": 0.1, "dual_clip": 1.15},
        peer=TRL + "importance_sampling_level sequence with delta",
        theirs=trl_loss(
            loss_type="grpo", importance_sampling_level="sequence", epsilon_low=0.1, epsilon_high=0.1, delta=1.15
        ),
    ),
    Comparison(
        spec="luspo",
        settings={"eps_low": 0.1, "eps_high": 0.1},
        peer=TRL + "loss_type luspo",
        theirs=trl_loss(loss_type="luspo", importance_sampling_level="sequence", epsilon_low=0.1, epsilon_high=0.1),
    ),
    Comparison(
        spec="cispo",
        settings={"eps_high": 0.5},
        peer=TRL + "loss_type cispo",
        theirs=trl_loss(loss_type="cispo", epsilon_high=1.5),
        reason="TRL's epsilon_high is the cap itself, 1 + eps_high",
    ),
    Comparison(
        spec="sapo",
        peer=TRL + "loss_type sapo",
        theirs=trl_loss(loss_type="sapo"),
        tolerance=1e-7,
        reason="TRL holds τ in float32",
    ),
    Comparison(spec="vespo", peer=TRL + "loss_type vespo", theirs=trl_loss(loss_type="vespo")),
    Comparison(
        spec="forking_tokens",
        settings={"share": 0.5},
        peer=TRL + "top_entropy_quantile",
        theirs=trl_loss(top_entropy_quantile=0.5),
        reason="for a whole share·N: TRL rounds the number of kept tokens up, here it is rounded down",
    ),
    Comparison(
        spec="forking_tokens+entropy_bonus",
        settings={"share": 0.5, "coef": 0.1, "tokens": "kept"},
        peer=TRL + "top_entropy_quantile with entropy_coef",
        theirs=trl_loss(top_entropy_quantile=0.5, entropy_coef=0.1),
        reason="for a whole share·N, as above",
    ),
    Comparison(
        spec="entropy_bonus", settings={"coef": 0.1}, peer=TRL + "entropy_coef", theirs=trl_loss(entropy_coef=0.1)
    ),
    Comparison(
        spec="opsm",
        settings={"delta": 0.05},
        peer=TRL + "off_policy_mask_threshold",
        theirs=trl_loss(off_policy_mask_threshold=0.05),
    ),
    Comparison(spec="ipo", peer="PrimeIntellect-ai/prime-rl ipo_loss_fn", clone="prime-rl", theirs=prime_rl_ipo_code),
    Comparison(
        spec="max_rl",
        peer="PrimeIntellect-ai/prime-rl MaxRLAlgorithm",
        clone="prime-rl",
        theirs=prime_rl_advantage("max_rl"),
        tolerance=1e-6,
        reason="prime-rl computes in float32",
    ),
    Comparison(
        spec="rae",
        peer="PrimeIntellect-ai/prime-rl RAEAlgorithm",
        clone="prime-rl",
        theirs=prime_rl_advantage("rae"),
        told=source_of,
    ),
    Comparison(
        spec="steer",
        preset="released",
        peer="zz-haooo/STEER compute_policy_loss_with_entropy",
        clone="STEER",
        theirs=steer_code(linear=False),
        reason="the released function holds weights in float32",
    ),
    Comparison(
        spec="steer",
        preset="released",
        settings={"mapping": "linear"},
        clone="STEER",
        peer="zz-haooo/STEER compute_policy_loss_with_entropy, linear",
        theirs=steer_code(linear=True),
        reason="the released function holds weights in float32",
    ),
    Comparison(
        spec="ce_gppo",
        preset="released",
        peer="Kwai-Klear/CE-GPPO compute_gppo_loss_general_beta",
        clone="CE-GPPO",
        theirs=ce_gppo_code,
    ),
    Comparison(
        spec="dcpo",
        preset="released",
        peer="lime-RL/DCPO compute_policy_loss_dcpo, clip_type dynamic",
        clone="DCPO",
        theirs=dcpo_code,
    ),
    Comparison(
        spec="bapo",
        preset="released",
        peer="WooooDyy/BAPO compute_policy_loss_bapo",
        clone="BAPO",
        theirs=bapo_code,
        reason="without dual clip, which is the surrogate's here",
    ),
    Comparison(
        spec="clip_b",
        settings={"mu": 0.5, "denominator": "kept"},
        clone="Trinity-RFT",
        peer="hiyuchang/Trinity-RFT ClipBAdvantageFn",
        theirs=clip_b_code,
    ),
    Comparison(
        spec="clip_v",
        settings={"mu": 0.3, "k": 0.1, "denominator": "kept"},
        clone="Trinity-RFT",
        peer="hiyuchang/Trinity-RFT ClipVAdvantageFn",
        theirs=clip_v_code,
    ),
    Comparison(
        spec="entrocraft",
        preset="released",
        settings={"anneal": 0.0},
        entropy=0.8,
        clone="entrocraft",
        peer="lblaoke/entrocraft compute_grpo_range_outcome_advantage, above its band",
        theirs=entrocraft_code(0.8),
    ),
    Comparison(
        spec="entrocraft",
        preset="released",
        settings={"anneal": 0.0},
        entropy=0.5,
        clone="entrocraft",
        peer="lblaoke/entrocraft compute_grpo_range_outcome_advantage, below its band",
        theirs=entrocraft_code(0.5),
    ),
    Comparison(
        spec="epo",
        settings={"coef": 0.1, "low": 0.8, "high": 1.2},
        entropy=0.9,
        clone="EPO",
        peer="WujiangXu/EPO DataParallelPPOActor, generate_entropy_penalty",
        theirs=epo_code(0.9),
        reason="the released loss has a constant penalty outside the band, which has no gradient and is left out here",
    ),
]

HEADER = """# Conformity with released code

Made by `python benchmarks/conformity.py`, which says how; a test compares the installed peers anew and fails when a
name is missing here. All numbers are from one padded batch of {rows} responses in float64 whose ratios are far enough
from 1 for every bound to be reached. Loss: absolute difference. Gradient: largest difference of the gradients in log π
and in the entropy, relative to the largest entry of the other's. For advantages, the first number is the largest
difference of an advantage. "rounding" is below {rounding:g}.

| ours | theirs | loss | gradient | reason or condition |
|---|---|---|---|---|
"""
REST = """
## Not compared with a function

No function of others is compared for these names; their tests have numbers worked out by hand from the paper or from
the released code that `python -m entrostat describe NAME` cites.

"""


def number(x: float | None) -> str:
    return "–" if x is None else "rounding" if x < ROUNDING else f"{x:.0e}"


def markdown(results: Mapping[str, list[float | None]]) -> str:
    """Return the page; results: differences of loss and gradient by `identity` of a comparison."""
    text = HEADER.format(rows=ROWS, rounding=ROUNDING)
    for c in COMPARISONS:
        loss, gradient = results[identity(c)]
        text += f"| `{c.key}` | {c.peer} | {number(loss)} | {number(gradient)} | {c.reason or '–'} |\n"
    return text + REST + ", ".join(f"`{name}`" for name in rest()) + "\n"


def identity(c: Comparison) -> str:
    return f"{c.key} = {c.peer}"


def rest() -> list[str]:
    """Return the names that no comparison has."""
    compared = {name for c in COMPARISONS for name in c.spec.partition(" ")[0].split("+")}
    every = [name for kind in ("surrogate", "controller", "advantage") for name in names(kind)]
    return [name for name in every if name not in compared]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clones", type=Path, help="folder of clones of released code")
    parser.add_argument("--page", action="store_true", help="measure nothing")
    given = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for c in COMPARISONS:
        if given.page or (c.clone and given.clones is None):
            continue
        released_code.CLONES = given.clones
        results[identity(c)] = c.measure()
        print(identity(c), *results[identity(c)], flush=True)
    known = [identity(c) for c in COMPARISONS]
    RESULTS.write_text(json.dumps({key: results[key] for key in known}, indent=1) + "\n")
    PAGE.write_text(markdown({key: results[key] for key in known}))


if __name__ == "__main__":
    main()
