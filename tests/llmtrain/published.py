"""Numbers of the papers and of their released scripts, typed from the texts, beside their places.

    numbers("steer/qwen2.5-math-7b-extreme")  ->  {"rollout.prompts": 512, ...}

A run's numbers are those of its paper, of its model, whose name starts the run's, and of its method, the rest of the
name. They are all values of the recipe that it marks as stated.
"""

from typing import Any, NamedTuple

Numbers = dict[str, Any]


UNSTATED = None
"""Value of a run that its paper leaves open, though it states it for others."""


class Paper(NamedTuple):
    """Numbers of a paper's runs."""

    shared: Numbers
    models: dict[str, Numbers]
    """By the start of a run's name; the longest that fits is taken."""
    methods: dict[str, Numbers]
    """By the rest of a run's name."""


def numbers(name: str) -> Numbers:
    """Return the published numbers of a recipe; those of its method replace those of its model and of its paper."""
    paper, _, run = name.partition("/")
    shared, models, methods = PUBLISHED[paper]
    model = max((start for start in models if f"{run}-".startswith(f"{start}-")), key=len)
    own = methods[run[len(model) :].removeprefix("-")] | RUNS.get(name, {})
    return {key: value for key, value in (shared | models[model] | own).items() if value is not UNSTATED}


def args(**more: Any) -> Numbers:
    """Return controller arguments under their keys in a recipe."""
    return {f"controller_args.{key}": value for key, value in more.items()}


MATH = ["aime24", "aime25", "amc23", "math500", "minerva", "olympiadbench"]

CODERS = ("3b", "7b", "14b")
CODER = {"data.train_files": ["archercoder"], "data.val_files": ["livecodebench"], "checkpoint.keep_best": UNSTATED}
EXTREME = args(eps_low=0.99, eps_high=5.0)  # 6, E.1
CODE_EDIT = {
    "data.train_files": ["code-edits"],
    "data.val_files": UNSTATED,
    "data.prompt_key": "prompt",
    "data.answer_key": "edit",
    "data.verifier": "exact",
    "data.max_prompt_length": 4096,
    "rollout.max_new_tokens": 1024,
    "checkpoint.keep_best": UNSTATED,
}  # D.1, D.2
CLIP = args(eps_low=0.2, eps_high=0.2)  # C.3: GRPO
WEIGHTS = {1: "exploitation", 2: "exploration", 3: "suppression", 4: "correction"}


def touched(controller: str, quadrant: int, weight: float, **more: float) -> Numbers:
    """Return the numbers of a run with other weights in one quadrant; the default touches the first."""
    alone = {} if quadrant == 1 else {"exploitation": 1.0}
    return {"controller": f"{controller}+quadrant_mask"} | args(**alone, **{WEIGHTS[quadrant]: weight}, **more)


QUADRANTS = {
    f"{way}-{number}-{share}": args(eps_low=0.2, eps_high=eps_high)
    | touched(surrogate, number, weight, share=share, likely=0.8, unlikely=0.2)
    for way, surrogate, eps_high, weights in (
        ("raise", "grpo", 0.2, (0.0, 2.0, 0.0, 2.0)),
        ("lower", "clip_higher", 0.28, (2.0, 0.0, 2.0, 0.0)),
    )
    for number, weight in enumerate(weights, 1)
    for share in (0.05, 0.1, 0.2)
}  # C.3, figures 14 to 16
SHAPED = {"controller": "grpo+entropy_advantage"} | CLIP | args(alpha=0.4, kappa=2.0)
STEERED = {"controller": "clip_higher+steer"} | args(lambda_min=0.7, eps_low=0.2, eps_high=0.28, dual_clip=10.0)
MATH_3_TO_5 = {"data.train_files": ["math-3to5"]}  # C.1

# STEER: sections 6 and D.2 (batches, lengths, rate, checkpoints, evaluation), D.1 (data), C.3 (clip of GRPO)
STEER = Paper(
    shared={
        "data.train_files": ["dapo-math-17k"],
        "data.val_files": MATH,
        "data.max_prompt_length": 1024,
        "rollout.prompts": 512,
        "rollout.n": 8,
        "rollout.temperature": 1.0,
        "rollout.max_new_tokens": 3072,
        "rollout.filter_groups": False,
        "optim.mini_batch_size": 32,
        "optim.lr": 1e-6,
        "optim.warmup_steps": 0,
        "steps": 200,
        "save_every": 10,
        "advantage": "grpo",
        "eval.settings": "steer",
        "checkpoint.keep_best": "eval/aime_2024_dapo_boxed/avg@32",
    },
    models={
        "qwen2.5-math-1.5b": {"model.path": "Qwen/Qwen2.5-Math-1.5B"},
        "qwen2.5-math-7b": {"model.path": "Qwen/Qwen2.5-Math-7B"},
        "qwen2.5-14b": {"model.path": "Qwen/Qwen2.5-14B"},
        "qwen2.5-7b": {"model.path": "Qwen/Qwen2.5-7B"},  # C.1, figure 10
        # table 5 and D.1
        **{f"qwen2.5-coder-{size}": CODER | {"model.path": f"Qwen/Qwen2.5-Coder-{size.upper()}"} for size in CODERS},
    },
    methods={
        "": STEERED,  # E.3; run_exp.sh
        "released": {"controller": "clip_higher+steer", "controller_preset": "released", "eval.every": 1, "steps": 330}
        | {"data.val_files": ["aime24"], "checkpoint.keep_best": "eval/avg"}
        | args(lambda_min=0.8, eps_low=0.2, eps_high=0.28, dual_clip=10.0),  # run_exp.sh
        "extreme": {"controller": "clip_higher+steer"}
        | args(lambda_min=0.7, eps_low=0.99, eps_high=5.0, dual_clip=10.0),  # 6, E.1; run_exp_extreme.sh
        "extreme-grpo": {"controller": "grpo"} | EXTREME,
        "extreme-entropy-advantage": {"controller": "grpo+entropy_advantage"} | EXTREME | args(alpha=0.4, kappa=2.0),
        "extreme-entropy-loss": {"controller": "grpo+entropy_bonus"} | EXTREME,
        "extreme-clip-cov": {"controller": "clip_cov"} | EXTREME | args(k=2e-4, omega_low=1.0, omega_high=5.0),
        "binary": {"controller": "clip_higher+steer"}
        | args(mapping="binary", lambda_min=0.7, eps_low=0.2, eps_high=0.28, dual_clip=10.0),  # E.3
        "linear": {"controller": "clip_higher+steer"}
        | args(mapping="linear", lambda_min=0.7, lambda_max=1.2, eps_low=0.2, eps_high=0.28, dual_clip=10.0),
        # D.2, baselines
        "grpo": {"controller": "grpo"} | CLIP,
        "opo": {"controller": "grpo", "advantage": "opo"} | args(eps_low=0.2, eps_high=0.2),
        "clip-high": {"controller": "clip_higher"} | args(eps_low=0.2, eps_high=0.28),
        "entropy-loss": {"controller": "grpo+entropy_bonus"} | args(eps_low=0.2, eps_high=0.2),
        "fork-tokens": {"controller": "grpo+forking_tokens"} | args(eps_low=0.2, eps_high=0.2),
        # D.2: SimpleRL-Zoo's recipe, train_grpo_math_tune_ray.sh
        "simplerl-zoo": {"controller": "grpo+entropy_bonus+kl_ref", "rollout.prompts": 256}
        | {"optim.mini_batch_size": 256, "optim.lr": 5e-7}
        | args(eps_low=0.2, eps_high=0.2, coef=0.001, beta=0.001, estimator="k3"),
        "w-reinforce": {"controller": "grpo", "advantage": UNSTATED} | args(eps_low=0.2, eps_high=0.2),
        "entropy-advantage": {"controller": "grpo+entropy_advantage"}
        | args(alpha=0.4, kappa=2.0, eps_low=0.2, eps_high=0.2),
        "clip-cov": {"controller": "clip_cov"} | args(k=2e-4, omega_low=1.0, omega_high=5.0),
        "kl-cov": {"controller": "kl_cov"} | args(k=2e-4, beta=1.0),
        # the grids that D.2 names
        **{
            f"fork-tokens-{share}": {"controller": "grpo+forking_tokens"} | CLIP | args(share=share)
            for share in (0.3, 0.4)
        },
        "entropy-loss-0.01": {"controller": "grpo+entropy_bonus"} | CLIP | args(coef=0.01),
        "entropy-loss-0.0001": {"controller": "grpo+entropy_bonus"} | CLIP | args(coef=0.0001),
        "w-reinforce-0.2": {"controller": "grpo", "advantage": "w_reinforce positive=0.2"} | CLIP,
        # C.4, table 8; E.3, figures 7 and 19; 4, figures 3d and 5; C.1, figure 10
        **{
            f"eps-{side}-{bound}": {"controller": "grpo"} | CLIP | args(**{f"eps_{side}": bound})
            for side in ("low", "high")
            for bound in (0.1, 0.5, 0.8)
        },
        **{f"lambda-{weight}": STEERED | args(lambda_min=weight) for weight in (0.6, 0.8)},
        **{f"{sign}-only": {"controller": f"grpo+{sign}_only"} | CLIP for sign in ("positive", "negative")},
        "gtpo": {"controller": "grpo+gtpo"} | CLIP,
        "math-gtpo": {"controller": "grpo+gtpo"} | CLIP | MATH_3_TO_5,
        "math-grpo": {"controller": "grpo"} | CLIP | MATH_3_TO_5,
        "math-entropy-advantage": SHAPED | MATH_3_TO_5,
        "deepscaler-grpo": {"controller": "grpo", "data.train_files": ["deepscaler"]} | CLIP,
        **QUADRANTS,
        "edit": STEERED | CODE_EDIT,
        "edit-grpo": {"controller": "grpo"} | CLIP | CODE_EDIT,
    },
)

# OPEFO, 6.1; the settings of Clip-Cov and KL-Cov are those of Entropy Mechanism, F.2
OPEFO_BASELINE = {"optim.mini_batch_size": 4, "optim.lr": 1e-6, "optim.warmup_steps": UNSTATED}
OPEFO = Paper(
    shared={
        "data.train_files": ["dapo-math-17k"],
        "data.val_files": MATH,
        "rollout.prompts": 32,
        "optim.mini_batch_size": 32,
        "optim.ppo_epochs": 1,
        "optim.lr": 2.83e-6,
        "optim.lr_schedule": "constant",
        "optim.warmup_steps": 10,
        "save_every": 10,
        "advantage": "grpo",
        "eval.settings": "opefo",
        "checkpoint.keep_best": "eval/avg",
    },
    models={
        "qwen2.5-math-7b": {"model.path": "Qwen/Qwen2.5-Math-7B", "rollout.max_new_tokens": 3000},
        "qwen3-4b": {"model.path": "Qwen/Qwen3-4B-Base", "rollout.max_new_tokens": 8000},
    },
    methods={
        "": {"controller": "opefo"},
        "grpo-on-policy": {"controller": "grpo"},
        "grpo": OPEFO_BASELINE | {"controller": "grpo"} | args(eps_low=0.2, eps_high=0.2),
        "clip-higher": OPEFO_BASELINE | {"controller": "clip_higher"} | args(eps_low=0.2, eps_high=0.28),
        "entropy-reg": OPEFO_BASELINE | {"controller": "grpo+entropy_bonus"} | args(coef=0.01),
        "clip-cov": OPEFO_BASELINE | {"controller": "clip_cov"} | args(k=2e-4, omega_low=1.0, omega_high=5.0),
        "kl-cov": OPEFO_BASELINE | {"controller": "kl_cov"} | args(k=2e-3, beta=1.0),
        # table 2
        "minus-only": {"controller": "opefo"} | args(variant="minus_only"),
        "plus-only": {"controller": "opefo"} | args(variant="plus_only"),
        "static": {"controller": "opefo"} | args(variant="static", lambda_static=0.001),
    },
)

# EntroPIC: 5.1, B.1 (training), B.2 (evaluation), D.2 (temperature)
PI = {"controller": "entropic", "target": 0.1}
MATH_ARENA = ("hmmt25", "brumo25", "cmimc25")
ENTROPIC = Paper(
    shared={
        "data.train_files": ["dapo-math-17k", "orz-math", "deepscaler"],
        "data.val_files": ["omni-math", "aime24", "aime25", "amc23", "math500", "olympiadbench"],
        "data.max_prompt_length": 2048,
        "rollout.prompts": 512,
        "rollout.n": 8,
        "rollout.temperature": 0.6,
        "rollout.max_new_tokens": 8192,
        "rollout.filter_groups": False,
        "optim.mini_batch_size": 512,
        "optim.ppo_epochs": 1,
        "optim.lr": 1e-6,
        "optim.lr_schedule": "constant",
        "steps": 2000,
        "save_every": 100,
        "eval.every": 20,
        "advantage": "grpo",
        "eval.settings": "entropic",
    },
    models={
        "qwen3-8b": {"model.path": "Qwen/Qwen3-8B-Base", "sft.examples": 10_000},
        "nemotron-1.5b": {
            "model.path": "nvidia/OpenReasoning-Nemotron-1.5B",
            "data.train_files": ["polaris"],
            "data.val_files": ["math500", "amc23", "aime24", "aime25", "olympiadbench", "minerva", *MATH_ARENA],
            "rollout.temperature": 1.0,
            "rollout.max_new_tokens": 32_768,
            "eval.settings": "entropic_reasoning",
            "target": 0.4,
        },
    },
    methods={
        "": {"controller": "entropic"},
        "off-policy": PI
        | {"controller": "grpo+entropic", "optim.mini_batch_size": 128}
        | args(eps_low=0.2, eps_high=0.2),
        "off-policy-p": PI  # 5.2, table 1
        | {"controller": "grpo+entropic", "optim.mini_batch_size": 128}
        | args(eps_low=0.2, eps_high=0.2, ki=0.0),
        "target-0.05": PI | {"target": UNSTATED},
        "target-0.2": PI | {"target": UNSTATED},
        "tau-0": PI | args(tau=0.0),  # D.5
        "tau-0.5": PI | args(tau=0.5),
        **{
            f"without-{name}": touched("grpo", number, 0.0, share=1.0, likely=0.95)  # 4.3, figure 3
            for number, name in enumerate(
                ("likely-positive", "unlikely-positive", "unlikely-negative", "likely-negative"), 1
            )
        },
        "plugged-in": PI | {"steps": UNSTATED},
        "temperature-1": PI | {"target": 0.3, "rollout.temperature": 1.0},
        "temperature-1-grpo": {"controller": "grpo", "rollout.temperature": 1.0},
        "grpo": {"controller": "grpo"},
        "grpo-off-policy": {"controller": "grpo", "optim.mini_batch_size": 128} | args(eps_low=0.2, eps_high=0.2),
        "nsr": {"controller": "grpo", "advantage": "nsr"},
        "aec": {"controller": "grpo+adaptive_entropy"},
        "dmmpt": {"controller": "grpo+dmmpt"},
        "clip-cov": {"controller": "clip_cov"} | args(k=2e-4),
        "kl-cov": {"controller": "kl_cov"},
    },
)

# Revisiting Entropy: B and F.1 (training, evaluation), 6.1 and D.1 (clips), 6.2 and F.7 (updates), D.3 (subsets)
CLIP_LOW = args(eps_low=0.2)
SUBSETS = {
    f"{size}-{kind}": {"controller": "grpo", "data.train_files": [f"dapo-{size}-{kind}"]}
    | {"optim.mini_batch_size": UNSTATED}
    | CLIP_LOW
    for kind in ("kmeans", "random")
    for size in (10001, 5031, 2538, 1246, 616)
}
UPDATES = {f"grpo-m{m}": {"controller": "grpo", "optim.mini_batch_size": 256 // m} | CLIP_LOW for m in (1, 2, 4)}
CLIP_HIGHER = {
    f"clip-higher-m{m}": {"controller": "clip_higher", "optim.mini_batch_size": 256 // m}
    | args(eps_low=0.2, eps_high=0.28)
    for m in (1, 2, 4)
}
REVISITING = Paper(
    shared={
        "data.train_files": ["dapo-math-17k"],
        "data.val_files": ["aime24", "aime25", "math500", "amc23", "minerva", "livecodebench", "ifeval"],
        "rollout.prompts": 256,
        "rollout.n": 16,
        "rollout.temperature": 1.0,
        "rollout.max_new_tokens": 4096,
        "optim.mini_batch_size": 64,  # E.2: M = 4
        "optim.lr_schedule": "cosine",
        "advantage": "grpo",
        "eval.settings": "revisiting",
    },
    models={
        "qwen2.5-math-7b": {
            "model.path": "Qwen/Qwen2.5-Math-7B",
            "checkpoint.keep_best": "eval/aime_2025_dapo_boxed/avg@64",
        },
        "llama3.1-8b-instruct": {
            "model.path": "meta-llama/Llama-3.1-8B-Instruct",
            "checkpoint.keep_best": "eval/math500/avg@64",
        },
    },
    methods={
        **SUBSETS,
        **UPDATES,
        **CLIP_HIGHER,
        "clip-lower": {"controller": "clip_lower"} | args(eps_low=0.28),
        "clip-tighter": {"controller": "clip_tighter"} | args(eps_low=0.12),
        "clip-free": {"controller": "clip_free"},
        # E.2 and 7.3
        "ada-ent-reg": {"controller": "grpo+adaptive_entropy", "target": 0.2} | CLIP_LOW,
        "ada-ent-reg-start": {"controller": "grpo+adaptive_entropy", "target": 0.3657} | CLIP_LOW,
        **{f"ent-reg-{c}": {"controller": "grpo+entropy_bonus"} | CLIP_LOW for c in ("0.001", "0.005", "negative")},
        "clip-cov": {"controller": "clip_cov"},
        "kl-cov": {"controller": "kl_cov"},
        "entropy-adv": {"controller": "grpo+entropy_advantage"} | CLIP_LOW,
        "rand-pos-clip": {"controller": "grpo+random_positive_clip"} | CLIP_LOW,
        "positive-only": {"controller": "grpo+positive_only"} | CLIP_LOW,
        "negative-only": {"controller": "grpo+negative_only"} | CLIP_LOW,
        "pos-adv-reweight-stage": {"controller": "grpo+positive_reweight"} | args(eps_low=0.2, variant="stage"),
        "pos-adv-reweight-epoch": {"controller": "grpo+positive_reweight"} | args(eps_low=0.2, variant="epoch"),
        "pos-adv-reweight-entropy": {"controller": "grpo+positive_reweight", "target": 0.2}
        | args(eps_low=0.2, variant="entropy_guided"),
    },
)

# Entropy Mechanism: 4.2, F.2 and recipe/dapo/*.sh (runs of table 2), B.1, B.4 and 2.3 (runs of the law)
LAW = {
    "data.train_files": ["eurus-2-rl"],
    "data.keep": ["ability=math"],
    "data.val_files": ["math500", "aime24", "amc23", "olympiadbench", "omni-math"],
    "optim.lr": 5e-7,
    "controller": "grpo",
    "rollout.temperature": UNSTATED,
    "rollout.max_new_tokens": UNSTATED,
    "optim.mini_batch_size": UNSTATED,
} | args(eps_low=0.2, eps_high=0.2)
GSM8K = LAW | {"data.train_files": ["gsm8k-train"], "data.keep": UNSTATED}
QWENS = {f"qwen2.5-{size}": f"Qwen/Qwen2.5-{size.upper()}" for size in ("0.5b", "1.5b", "3b", "7b", "32b")}
OTHERS = {
    "deepseek-math-7b": "deepseek-ai/deepseek-math-7b-base",
    "llama3.1-8b": "meta-llama/Llama-3.1-8B",
    "llama3.2-3b": "meta-llama/Llama-3.2-3B",
    "mistral-7b": "mistralai/Mistral-7B-v0.3",
    "mistral-nemo": "mistralai/Mistral-Nemo-Base-2407",
}
CODE = {"data.train_files": ["acecode", "eurus-2-rl", "kodcode"], "data.val_files": UNSTATED} | {
    "data.keep": ["ability=code", "style=instruct", "style=complete"]
}
E_CLIP = args(eps_low=0.2, eps_high=0.2, dual_clip=10.0)
MISTRAL = "mistralai/Mistral-Small-24B-Base-2501"
ENTROPY_MECHANISM = Paper(
    shared={
        "data.train_files": ["dapo-math-17k"],
        "data.val_files": ["math500", "aime24", "aime25", "amc23", "omni-math", "olympiadbench", "minerva"],
        "data.max_prompt_length": 2048,
        "rollout.prompts": 256,
        "rollout.n": 8,
        "rollout.temperature": 1.0,
        "rollout.max_new_tokens": 8192,
        "rollout.filter_groups": True,
        "rollout.gen_batch_size": 256,
        "rollout.max_gen_batches": 10,
        "optim.mini_batch_size": 32,
        "optim.lr": 5e-7,
        "optim.lr_schedule": "constant",
        "optim.warmup_steps": 0,
        "optim.weight_decay": 0.0,
        "optim.max_grad_norm": 1.0,
        "save_every": 32,
        "eval.every": 4,
        "advantage": "grpo",
        "eval.settings": "entropy_mechanism",
    },
    models={
        "qwen2.5-7b": {"model.path": "Qwen/Qwen2.5-7B"},
        "qwen2.5-32b": {"model.path": "Qwen/Qwen2.5-32B", "optim.lr": 1e-6},
        "qwen3-8b": {"model.path": "Qwen/Qwen3-8B"},
        "llama3.1-8b": {"model.path": "meta-llama/Llama-3.1-8B", "data.train_files": ["gsm8k-train"]},
        **{f"law-{name}": LAW | {"model.path": path} for name, path in QWENS.items()},
        **{f"law-code-{name}": LAW | CODE | {"model.path": path} for name, path in QWENS.items()},
        **{f"law-{name}": GSM8K | {"model.path": path} for name, path in OTHERS.items()},
        "law-mistral-small": LAW | {"model.path": MISTRAL},
        "law-code-mistral-small": LAW | CODE | {"model.path": MISTRAL},
        "law-qwen2.5-7b-instruct": LAW,  # figure 9
    },
    methods={
        "": {},
        "grpo": {"controller": "grpo"} | args(eps_low=0.2, eps_high=0.2, dual_clip=10.0),
        "clip-higher": {"controller": "clip_higher"} | args(eps_low=0.2, eps_high=0.28, dual_clip=10.0),
        "clip-cov": {"controller": "clip_cov"} | args(k=2e-4, omega_low=1.0, omega_high=5.0),
        "kl-cov": {"controller": "kl_cov"} | args(beta=1.0),
        "on-policy": {"controller": "reinforce", "optim.mini_batch_size": 256},  # 3.3
        # figure 6, appendix E: values in pictures alone
        **{f"clip-cov-{k}": {"controller": "clip_cov"} | args(omega_low=1.0, omega_high=5.0) for k in ("2e-5", "2e-3")},
        **{f"kl-cov-{beta}": {"controller": "kl_cov"} | args(k=2e-3) for beta in ("0.1", "10")},
        **{
            f"entropy-loss-{c}": {"controller": "grpo+entropy_bonus", "model.path": UNSTATED} | E_CLIP
            for c in ("0.0001", "0.001", "0.005", "0.01")
        },
        **{
            f"kl-ref-{c}": {"controller": "grpo+kl_ref", "model.path": UNSTATED} | E_CLIP
            for c in ("0.001", "0.01", "0.1")
        },
        "rloo": {"advantage": "rloo"},
        "reinforce-pp": {"advantage": "reinforce_pp"},
        "prime": {"advantage": "prime", "prime.lr": 1e-6},
        "gsm8k": {"data.train_files": UNSTATED, "data.keep": UNSTATED},  # figure 8a
    },
)
RUNS = {
    "entropy_mechanism/qwen2.5-7b-kl-cov": args(k=2e-3),  # F.2
    "entropy_mechanism/qwen2.5-32b-kl-cov": args(k=2e-4),  # F.2
    "entropy_mechanism/law-deepseek-math-7b": {"data.max_prompt_length": UNSTATED},
    "entropic/qwen3-8b": {"target": 0.1},  # 5.1
    "opefo/qwen3-4b-kl-cov": args(k=UNSTATED),
}
"""Numbers that depend on model and method together."""

PUBLISHED = {
    "steer": STEER,
    "opefo": OPEFO,
    "entropic": ENTROPIC,
    "revisiting": REVISITING,
    "entropy_mechanism": ENTROPY_MECHANISM,
}
