from datasets import Dataset
from trl import GRPOConfig

from entrostat.integrations.trl import EntrostatGRPOTrainer
from llmtrain.settings.presets import get_preset
from llmtrain.training.warmup import start_model
from llmtrain.verifiers.countdown import Problem, generate, prompt, verify


def reward(completions, numbers, target, **_):
    rows = zip(completions, numbers, target, strict=True)
    return [float(verify(Problem(tuple(n), t), text).correct) for text, n, t in rows]


data = Dataset.from_list([{"prompt": prompt(p), "numbers": p.numbers, "target": p.target} for p in generate(2048, 0)])
settings = {"max_steps": 40, "per_device_train_batch_size": 128, "max_completion_length": 24, "learning_rate": 5e-4}
args = GRPOConfig("runs/trl", use_cpu=True, bf16=False, logging_steps=5, **settings)
loop = {"target": 0.45, "delta": 0.005, "coef_max": 0.1}
model = str(start_model(get_preset("countdown-cpu")))  # built and warmed up once, in about a minute
show = {"progress": ["reward", "entropy", "adaptive_entropy/coef"]}  # printed every five steps
EntrostatGRPOTrainer(model, reward, args, data, controller="adaptive_entropy", controller_args=loop, **show).train()
