"""Two rollouts trained by verl's own actor worker on a CPU, and by the plan of the same controller with torch's SGD.

    python -P tests/common/verl_two_rollouts.py FOLDER RESPONSES

RESPONSES: of a micro-batch; 0 lets verl split by tokens, which reorders the responses.

Both start from one tiny model, which is saved in FOLDER and samples the rollouts; a rollout has two optimizer steps, so
that the second has ratios other than 1. verl's worker is the one that its trainer starts: FSDP, here in one process
with gloo. Prints a JSON object: relative difference of the parameters, how far they moved, the controllers'
coefficients and verl's metrics of each rollout.
"""

import importlib.util
import json
import os
import sys
from contextlib import nullcontext, redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import verl
from hydra import compose, initialize_config_dir
from verl.models.transformers import monkey_patch
from verl.plugin.platform import set_platform
from verl.plugin.platform.platform_base import PlatformBase
from verl.protocol import DataProto
from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage
from verl.utils import tensordict_utils as tu
from verl.workers.engine_workers import ActorRolloutRefWorker
from verl.workers.utils.padding import left_right_2_no_padding, no_padding_2_padding

import entrostat as es
import entrostat.integrations.verl as ours
from entrostat.integrations.packing import pack
from entrostat.integrations.verl_settings import CHAIN


def nothing(*_: Any, **__: Any) -> int:
    return 0


class NoDevice(SimpleNamespace):
    """Device module whose other functions return 0."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return nothing


class CPU(PlatformBase):
    """Platform without an accelerator, which verl leaves to plug-ins."""

    device_name, vendor_name = "cpu", "none"
    device_module = NoDevice(
        mem_get_info=lambda *_: (0, 0), get_device_name=lambda: "CPU", current_device=lambda: "cpu"
    )
    set_device = synchronize = manual_seed = manual_seed_all = profiler_start = profiler_stop = nothing
    cudart = set_allocator_settings = empty_cache = nothing

    def is_available(self) -> bool:
        return True

    def current_device(self) -> Any:
        return "cpu"

    def device_count(self) -> int:
        return 1

    def get_device_capability(self, device_index: int = 0) -> tuple[None, None]:
        return None, None

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "NO_VISIBLE_DEVICES"

    def nvtx_range(self, msg: str) -> Any:
        return nullcontext()

    def ray_resource_name(self) -> str:
        return "CPU"

    def ray_noset_envvars(self) -> list[str]:
        return []

    def is_ipc_supported(self) -> bool:
        return False


SPEC = importlib.util.spec_from_file_location(
    "verl_drop_in", Path(__file__).parents[2] / "benchmarks" / "verl_drop_in.py"
)
assert SPEC is not None
assert SPEC.loader is not None
drop_in = importlib.util.module_from_spec(SPEC)
sys.modules["verl_drop_in"] = drop_in
SPEC.loader.exec_module(drop_in)

CONTROLLER = "steer+clip_cov+gtpo+adaptive_entropy"
ARGS = {"target": 9.0, "delta": 0.05, "coef_max": 1.0, "clip_cov.k": 0.1, "omega_low": -9.0, "omega_high": 9.0}
ARGS |= {"eps_low": 0.05, "eps_high": 0.05}
ROWS, GROUP, PROMPT, LENGTH = drop_in.ROWS, drop_in.GROUP, drop_in.PROMPT, drop_in.LENGTH
HALF = ROWS // 2
LEARNING_RATE, CLIP = 0.2, 1.0


def worker(folder: str, responses: int) -> Any:
    """Return verl's actor worker with the model of a folder, and this many responses in a micro-batch."""
    actor, model = "actor_rollout_ref.actor.", "actor_rollout_ref.model."
    by_tokens = [f"{actor}use_dynamic_bsz=True", f"{actor}ppo_max_token_len_per_gpu={2 * (PROMPT + LENGTH)}"]
    loss = actor + "policy_loss."
    overrides = [
        f"{loss}_target_=entrostat.integrations.verl.PolicyLossConfig",
        f"{loss}loss_mode=entrostat/chain",
        f"+{loss}controller={CONTROLLER}",
        *(f"+{loss}controller_args.{name}={value}" for name, value in ARGS.items()),
        f"{model}path={folder}",
        f"+{model}load_tokenizer=False",
        f"+{model}override_config.attn_implementation=eager",
        f"{model}use_remove_padding=False",
        f"{model}enable_gradient_checkpointing=False",
        f"{actor}strategy=fsdp2",
        f"{actor}use_torch_compile=False",
        f"{actor}fsdp_config.use_torch_compile=False",
        f"+{actor}fsdp_config.mixed_precision={{param_dtype: fp32, reduce_dtype: fp32, buffer_dtype: fp32}}",
        f"{actor}ppo_mini_batch_size={HALF // GROUP}",
        *([f"{actor}ppo_micro_batch_size_per_gpu={responses}"] if responses else by_tokens),
        f"{actor}optim.optimizer=SGD",
        f"{actor}optim.lr={LEARNING_RATE}",
        f"{actor}optim.weight_decay=0",
        f"{actor}optim.clip_grad={CLIP}",
        "actor_rollout_ref.rollout.name=vllm",
        f"actor_rollout_ref.rollout.n={GROUP}",
        f"actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu={ROWS}",
    ]
    with initialize_config_dir(str(Path(verl.__file__).parent / "trainer/config"), version_base=None):
        config = compose("ppo_trainer", overrides=overrides)
    made = ActorRolloutRefWorker(config=config.actor_rollout_ref, role="actor")
    made.init_model()
    return made


def rollout(policy: Any, seed: int) -> DataProto:
    """Return responses of different lengths, sampled from the policy and rewarded for odd tokens."""
    g = torch.Generator().manual_seed(seed)
    prompts = torch.randint(1, drop_in.VOCABULARY, (ROWS // GROUP, PROMPT), generator=g).repeat_interleave(GROUP, 0)
    torch.manual_seed(seed)
    many = {"max_new_tokens": LENGTH, "min_new_tokens": LENGTH, "eos_token_id": None, "pad_token_id": 0}
    ids = policy.generate(prompts, do_sample=True, **many)
    lengths = torch.randint(2, LENGTH + 1, (ROWS, 1), generator=g)
    mask = (torch.arange(LENGTH) < lengths).long()
    attended = torch.cat([torch.ones(ROWS, PROMPT, dtype=torch.long), mask], 1)
    score = torch.zeros(ROWS, LENGTH).scatter_(1, lengths - 1, (ids[:, PROMPT:] % 2).float().mean(-1, keepdim=True))
    uid = np.array([f"prompt {i // GROUP}" for i in range(ROWS)], dtype=object)
    tensors = {
        "prompts": ids[:, :PROMPT].clone(),
        "responses": ids[:, PROMPT:].clone(),
        "input_ids": ids,
        "attention_mask": attended,
        "position_ids": (attended.cumsum(1) - 1).clamp(min=0),
        "response_mask": mask,
        "rm_scores": score,
        "advantages": compute_grpo_outcome_advantage(score, mask, uid)[0],
    }
    return DataProto.from_dict(tensors=tensors, non_tensors={"uid": uid}, meta_info={"temperature": 1.0})


def through_verl(actor: Any, batch: DataProto) -> dict[str, list[float]]:
    """Train verl's worker on a rollout, as verl's trainer does, and return its metrics."""
    asked = left_right_2_no_padding(batch.to_tensordict())
    tu.assign_non_tensor(asked, calculate_entropy=True, compute_loss=False)
    batch.batch["old_log_probs"] = no_padding_2_padding(actor.compute_log_prob(asked)["log_probs"], asked).float()
    given = left_right_2_no_padding(batch.to_tensordict())
    plan = {"calculate_entropy": False, "compute_loss": True, "epochs": 1, "seed": 1}
    plan |= {"distillation_use_topk": False, "distillation_only": False, "dataloader_kwargs": {"shuffle": False}}
    tu.assign_non_tensor(given, global_batch_size=HALF, mini_batch_size=HALF, **plan)
    found: dict[str, list[float]] = tu.get(actor.update_actor(given), "metrics")
    return found


def directly(
    policy: Any, optimizer: torch.optim.Optimizer, controller: es.Controller, batch: DataProto, seed: int
) -> None:
    """Train the policy on a rollout by the plan of its controller; this many rollouts were trained on before."""
    ids, mask = batch.batch["input_ids"], batch.batch["response_mask"].bool()

    def statistics(rows: slice) -> dict[str, torch.Tensor]:
        found: dict[str, torch.Tensor] = drop_in.statistics(
            policy(ids[rows]).logits[:, PROMPT - 1 : -1], ids[rows, PROMPT:]
        )
        return found

    with torch.no_grad():
        old = statistics(slice(None))
    controller.observe(es.StepStats(entropy=float(old["entropy"][mask].mean())))
    held = {"old_logp": old["logp"], "old_entropy": old["entropy"], "advantage": batch.batch["advantages"]}
    row = torch.arange(ROWS)
    held |= {"reward": batch.batch["rm_scores"].sum(-1), "seq_id": row % HALF, "group_id": row // GROUP}
    for update, rows in enumerate((slice(0, HALF), slice(HALF, ROWS))):
        packed = pack(mask[rows], {name: x[rows] for name, x in held.items()} | statistics(rows))
        plan = controller.plan(es.Tokens(**{name: x.detach() for name, x in packed.items()}), step=2 * seed + update)
        optimizer.zero_grad()
        plan.loss(packed["logp"], packed["entropy"]).backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), CLIP)
        optimizer.step()


def parameters(policy: Any) -> torch.Tensor:
    return torch.cat([getattr(p, "full_tensor", lambda p=p: p)().detach().flatten() for p in policy.parameters()])


def main(folder: str, responses: int) -> None:
    os.environ |= {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    os.environ["VERL_ENGINE_DEVICE"] = "cuda"  # the name under which verl's FSDP engine is registered
    set_platform(CPU())
    monkey_patch.is_trl_available = lambda: False  # verl patches a class that TRL no longer has
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=0, world_size=1)
    policy = drop_in.model(0).float()
    policy.save_pretrained(folder)
    actor, loss = worker(folder, responses), ours.LOSSES[CHAIN]
    before = parameters(policy)
    optimizer = torch.optim.SGD(policy.parameters(), lr=LEARNING_RATE)
    controller = es.make(CONTROLLER, **ARGS)
    metrics = []
    for seed in range(2):
        batch = rollout(policy, seed)
        metrics.append({key: np.mean(value) for key, value in through_verl(actor, batch).items()})
        directly(policy, optimizer, controller, batch, seed)
        if seed == 0:
            actor.save_checkpoint(f"{folder}/checkpoint", global_step=1)
    theirs, mine = parameters(actor.actor.engine.module) - before, parameters(policy) - before
    states = [c.state_dict()["adaptive_entropy"] for c in (loss.controller, controller)]
    found = {
        "gap": float((theirs - mine).norm() / mine.norm()),
        "moved": float(mine.norm() / before.norm()),
        "coef": [float(state["coef"]) for state in states],
        "calls": loss.calls,
        "rollouts": loss.rollouts,
        "metrics": metrics,
        "again": resumed(actor, batch, f"{folder}/checkpoint", before + theirs),
    }
    print(json.dumps(found, default=float))


def resumed(actor: Any, batch: DataProto, checkpoint: str, ends: torch.Tensor) -> dict[str, Any]:
    """Train the second rollout again from a checkpoint, as a new process would, whose controllers are new.

    Returns the largest difference of the parameters, the state, and what is said about checkpoints without a state.
    """
    loss, config = ours.LOSSES[CHAIN], actor.actor.config_of_loss
    loss.settings = None
    actor.load_checkpoint(checkpoint)
    before = (loss.calls, loss.rollouts, float(loss.controller.state_dict()["adaptive_entropy"]["coef"]))
    through_verl(actor, batch)
    apart = float((parameters(actor.actor.engine.module) - ends).abs().max())
    (Path(checkpoint) / "entrostat.pt").unlink()
    loss.settings = None
    with redirect_stdout(StringIO()) as said:
        actor.load_checkpoint(checkpoint)
    fresh = (loss.calls, loss.rollouts, float(loss.controller.state_dict()["adaptive_entropy"]["coef"]))
    object.__setattr__(config.policy_loss, "controller_args", ARGS | {"target": "0.4x"})
    try:
        actor.load_checkpoint(checkpoint)
        refused = ""
    except ValueError as error:
        refused = str(error)
    return {"state": before, "apart": apart, "fresh": fresh, "said": said.getvalue(), "refused": refused}


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
