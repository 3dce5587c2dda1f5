"""A trainer of TRL small enough to train in half a second."""

import torch
from datasets import Dataset
from trl import GRPOConfig

STEPS = 5


def even_digits(completions, **_):
    """Share of even digits: graded, so that every group has a signal."""
    return [sum(c in "02468" for c in text) / 8 for text in completions]


def build(cls, folder, out, *, controller=None, reward=even_digits, data=None, **settings):
    """A trainer that makes five updates of 16 responses, 4 to a prompt, in two micro-batches."""
    defaults = {
        "per_device_train_batch_size": 8,
        "gradient_accumulation_steps": 2,
        "num_generations": 4,
        "max_completion_length": 8,
        "max_steps": STEPS,
        "learning_rate": 1e-2,
        "save_strategy": "no",
    }
    args = GRPOConfig(
        str(out),
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        report_to="none",
        logging_steps=1,
        disable_tqdm=True,
        **(defaults | settings),
    )
    whole = Dataset.from_dict({"prompt": [f"{a}+{b}" for a in range(8) for b in range(8)]})
    data = whole if data is None else data
    return cls(str(folder), reward, args, data, eval_dataset=whole.select(range(8)), **(controller or {}))


def parameters(trainer) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in trainer.model.parameters()])


def logged(trainer, key: str) -> list[float]:
    return [entry[key] for entry in trainer.state.log_history if key in entry]


def relative(found: torch.Tensor, expected: torch.Tensor) -> float:
    return ((found - expected).norm() / expected.norm()).item()
