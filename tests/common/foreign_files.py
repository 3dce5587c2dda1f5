"""Files of other trainers: made by their own writers or as these write them."""

import csv
import json

import numpy as np

STEPS = np.arange(1, 31)
ENTROPY = (0.1 + 1.3 * np.exp(-STEPS / 8)).round(6)
REWARD = (0.9 - 0.2 * np.exp(ENTROPY)).round(6)


def wandb_chart(path, runs=("lr-1e-6",), x="Step"):
    """Write the CSV of a chart of W&B with two metrics of each run."""
    columns = [f"{run} - {name}" for run in runs for name in ("_step", "actor/entropy", "critic/score/mean")]
    with path.open("w", newline="") as file:
        table = csv.writer(file, quoting=csv.QUOTE_ALL)
        table.writerow([x, *(f"{name}{end}" for name in columns for end in ("", "__MIN", "__MAX"))])
        for step, entropy, reward in zip(STEPS, ENTROPY, REWARD, strict=True):
            one = [value for number in (step, entropy, reward) for value in (number, number - 1, number + 1)]
            table.writerow([step if x == "Step" else f"{step * 1.5}", *one * len(runs)])
    return path


def wandb_run(path):
    """Write an offline run with the library of W&B itself, as verl logs to it, and text and a histogram."""
    import wandb

    quiet = wandb.Settings(silent=True, console="off", x_disable_stats=True)
    run = wandb.init(mode="offline", dir=path.parent, project="own", settings=quiet)
    for step, entropy, reward in zip(STEPS.tolist(), ENTROPY.tolist(), REWARD.tolist(), strict=True):
        values = {"actor/entropy": entropy, "critic/score/mean": reward, "x": float("nan"), "note": "é" * 1500}
        run.log(values | {"weights": wandb.Histogram([0, 1, step])}, step=step)
    run.finish()
    wandb.teardown()
    (written,) = path.parent.glob("wandb/offline-run-*/run-*.wandb")
    return written.rename(path)


def openrlhf_log(path):
    """Write console output of OpenRLHF: its lines of metrics, an evaluation, and other lines."""
    lines = ["INFO 11-25 02:00:00 ppo_trainer.py:510] ✨ Experience making completed in 0:00:10"]
    for step, entropy, reward in zip(STEPS, ENTROPY, REWARD, strict=True):
        found = {"policy_loss": 0.1, "entropy_loss": float(entropy), "rollout/reward_mean": float(reward), "kl": 0.0}
        lines.append(f"(PPOTrainer pid=7) INFO 11-25 02:00:00 ppo_trainer.py:547] ✨ Global step {step}: {found}")
    found = {"eval_aime_pass8": 0.5, "eval_aime_pass1": 0.25, "eval_num_samples": 240.0}
    lines.append(f"INFO ✨ Evaluation completed in 0:01:00, global_step {STEPS[-1]}, eval_metrics: {found}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def trainer_state(path):
    """Write a trainer_state.json as TrainerState.save_to_json does; test_integration_trl.py has one of TRL itself."""
    history = [
        {"loss": 0.01, "entropy": float(h), "reward": float(r), "completions/mean_length": 90.0, "kl": 0.0, "step": s}
        for s, h, r in zip(STEPS.tolist(), ENTROPY, REWARD, strict=True)
    ]
    history += [{"eval_reward": 0.5, "step": 10}, {"train_runtime": 12.5, "train_loss": 0.01, "step": len(STEPS)}]
    state = {"best_metric": None, "best_model_checkpoint": None, "global_step": len(STEPS), "log_history": history}
    path.write_text(json.dumps(state | {"trial_params": None}, indent=2, sort_keys=True) + "\n")
    return path


def event_files(folder):
    """Write scalars, one as a tensor, a histogram and a text with the writer of torch."""
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(folder))
    for step, entropy, reward in zip(STEPS.tolist(), ENTROPY, REWARD, strict=True):
        writer.add_scalar("train/entropy", entropy, step)
        writer.add_scalar("train/reward", reward, step, new_style=True)
        writer.add_histogram("weights", np.arange(10.0), step)
    writer.add_text("samples", "2+2=4", 3)
    writer.close()
    return folder
