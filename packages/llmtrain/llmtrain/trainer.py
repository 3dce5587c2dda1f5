"""The training loop.

    prompts ► rollout ► verifier ► advantages ► statistics ► controller.observe ► learner.update ► run log
       ▲                                                                                │
       └───────────────────────────── the same weights ─────────────────────────────────┘

Randomness is keyed by (seed, step, purpose), so nothing but the step has to be remembered to repeat it.
"""

import signal
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from entrostat import Chain, StepStats, get_advantage, make
from entrostat.advantages import advantage_needs
from entrostat.diagnostics import EntropyTrace, to_floats
from entrostat.draws import generator_seed
from entrostat.runlog import RunLog

from .batch import Batch
from .checkpoint import checkpoints, latest, load_state, save_checkpoint
from .config import TrainConfig, to_dict
from .engine import Engine, NonFiniteError, TorchEngine
from .evaluate import evaluate
from .launch import world_size
from .learner import Experience, Learner
from .mini_batch import mini_batches, share
from .model import load
from .policy import Policy
from .ranks import join
from .rollout import HFRollout, Rollouts
from .samples import TokenTable, pieces
from .tasks import TASKS, Task, get_task

ABSENT_FIELDS = frozenset({"ref_logp", "truncated_entropy"})
"""Fields of Tokens that this trainer does not compute."""
Report = Callable[[int, dict[str, float]], None]


class TrainingStoppedError(RuntimeError):
    """Training cannot go on; the message says at which step and what was saved last."""


def make_controller(config: TrainConfig) -> Chain:
    """The controller of a run; ValueError names an unknown name or hyperparameter, and a target nobody takes."""
    settings = dict(config.controller_args)
    if config.target_entropy is not None:
        settings["target"] = config.target_entropy
    return make(config.controller, config.controller_preset, **settings)


def check(config: TrainConfig) -> None:
    """Everything about a configuration that can be known to be wrong before a model is loaded: ValueError."""
    absent = make_controller(config).needs & ABSENT_FIELDS
    if absent:
        raise ValueError(f"controller {config.controller!r} needs {', '.join(sorted(absent))}, which llmtrain has not")
    missing = set(advantage_needs(config.advantage)) - {"length"}
    if missing:
        raise ValueError(f"advantage {config.advantage!r} needs {', '.join(sorted(missing))}, which llmtrain has not")
    if config.task.name not in TASKS:
        raise ValueError(f"unknown task {config.task.name!r}; choose from {', '.join(TASKS)}")
    if config.model.path is not None and not Path(config.model.path).is_dir():
        raise ValueError(f"model folder {config.model.path} does not exist")
    check_ranks(config)
    if config.device not in ("cpu", "cuda"):
        raise ValueError(f"unknown device {config.device!r}; choose from cpu, cuda")
    if config.device == "cuda" and not torch.cuda.is_available():
        raise ValueError("device cuda is not available here; use --device cpu")


def check_ranks(config: TrainConfig) -> None:
    """What can be wrong with the engine and the number of processes: ValueError."""
    ranks, engine, size = world_size(config.nproc), config.engine, config.optim.mini_batch_size
    if ranks > 1 and engine.name == "torch":
        raise ValueError(f"the torch engine is one process, not {ranks}: use --engine.name deepspeed")
    if size % ranks:
        raise ValueError(f"optim.mini_batch_size {size} must be a multiple of the {ranks} ranks")
    if engine.name == "deepspeed" and find_spec("deepspeed") is None:
        raise ValueError("engine deepspeed is not installed; pip install 'entrostat[train,deepspeed]'")


def make_engine(config: TrainConfig, policy: Policy) -> Engine:
    """The engine of a run; deepspeed joins the process group that the environment describes."""
    if config.engine.gradient_checkpointing:
        policy.model.gradient_checkpointing_enable({"use_reentrant": False})
    if config.engine.name == "torch":
        return TorchEngine(policy.model, config.optim)
    from .deepspeed_engine import DeepSpeedEngine

    return DeepSpeedEngine(policy, config.optim, config.engine, join(config.device))


class NoLog:
    """The run log of all ranks but the first, who writes for them."""

    def log(self, step: int, metrics: Mapping[str, Any]) -> None: ...

    def sample(self, step: int, **fields: Any) -> None: ...

    def close(self) -> None: ...


class Trainer:
    """One run. `resume` continues from the newest checkpoint in `config.out`."""

    def __init__(self, config: TrainConfig, model_path: str | Path, resume: bool = False) -> None:
        if config.threads:
            torch.set_num_threads(config.threads)
        self.config = config
        self.controller = make_controller(config)
        self.advantage = get_advantage(config.advantage)
        self.task: Task = get_task(config.task)
        source = latest(config.out) if resume else Path(model_path)
        self.model: PreTrainedModel
        self.tokenizer: PreTrainedTokenizerBase
        self.model, self.tokenizer = load(source)
        self.model.train().to(torch.device(config.device))
        self.policy = Policy(self.model, config.rollout.temperature)
        self.engine = make_engine(config, self.policy)
        self.ranks = self.engine.ranks
        self.learner = Learner(self.policy, self.engine, self.controller, config.optim, config.seed)
        self.trace = EntropyTrace()
        self.step = 0
        torch.manual_seed(config.seed)
        if resume:
            self._restore(load_state(source))
            self.engine.load_shards(source)
        self.log: RunLog | NoLog = NoLog()
        if self.ranks.rank == 0:
            self.log = RunLog(config.out, to_dict(config), config.seed, resume_at=self.step if resume else None)
        self._interrupted = False

    # State --------------------------------------------------------------------------------------------------------

    def _restore(self, state: dict[str, Any]) -> None:
        self.step = state["step"]
        self.engine.load_state_dict(state["engine"])
        self.controller.load_state_dict(state["controller"])
        self.learner.planned = state["planned"]
        self.trace.load_state_dict(state["trace"])
        torch.set_rng_state(state["rng"])

    def save(self) -> Path:
        """Write a checkpoint of the state after the last whole step."""
        state = {
            "controller": self.controller.state_dict(),
            "planned": self.learner.planned,
            "trace": self.trace.state_dict(),
            "rng": torch.get_rng_state(),
        }
        return save_checkpoint(self.config.out, self.step, self.model, self.tokenizer, state, self.engine)

    # The loop -----------------------------------------------------------------------------------------------------

    def run(self, report: Report = lambda step, metrics: None) -> None:
        """Train to the last step, or to the first Ctrl-C, and leave a checkpoint.

        report: called after every step with its metrics.
        Raises TrainingStoppedError when a loss is not finite; the last good checkpoint stays.
        """
        previous = signal.signal(signal.SIGINT, self._on_interrupt)
        try:
            while self.step < self.config.steps and not self.ranks.most(int(self._interrupted)):
                every = self.config.eval.every
                metrics = self.evaluate() if every and self.step % every == 0 else {}
                metrics |= self._train_step()
                self.log.log(self.step, metrics)
                report(self.step, metrics)
                self.step += 1
                if self.step % self.config.save_every == 0:
                    self.save()
            self.save()
            if self.config.eval.every and not self.interrupted:
                self.log.log(self.step, self.evaluate())
        except NonFiniteError as error:
            good = checkpoints(self.config.out)
            where = f"last good checkpoint: {good[-1]}" if good else "no checkpoint was written yet"
            raise TrainingStoppedError(f"step {self.step}: {error}; {where}") from None
        finally:
            signal.signal(signal.SIGINT, previous)
            self.log.close()

    def _on_interrupt(self, signum: int, frame: Any) -> None:
        if self._interrupted:
            raise KeyboardInterrupt
        self._interrupted = True

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the run before its last step."""
        return self.step < self.config.steps

    def _train_step(self) -> dict[str, float]:
        began = time.perf_counter()
        rollouts, texts, reward = self._rollout()
        sampled = time.perf_counter()
        experience = self._experience(rollouts, reward)
        entropy = self._mean(experience.stats.entropy)
        self.controller.observe(self._step_stats(entropy))
        metrics = {
            **to_floats(self.trace.observe(entropy)),
            "reward": self._mean(reward),
            "response_length": self._mean(rollouts.response_lengths),
            "finished": self._mean(rollouts.finished),
            **{key: float(value) for key, value in self.controller.metrics().items()},
        }
        shown = int(experience.advantage.ne(0).byte().argmax())  # the first response with an advantage, or the first
        table = TokenTable(int(experience.sequence[shown]))
        updates = self.learner.update(experience, self.step, watch=table.see)
        self.trace.expect(updates.get("flow/total"))
        ended = time.perf_counter()
        tokens = int(self.ranks.total(rollouts.response_lengths.sum()))
        self._log_sample(rollouts, shown, texts[shown], reward[shown].item(), table)
        return (metrics | updates | metrics) | {
            "tokens_per_second": tokens / (ended - began),
            "time/rollout": sampled - began,
            "time/step": ended - began,
        }

    def _mean(self, x: torch.Tensor) -> float:
        """Mean of x (N,) over all ranks."""
        total, count = self.ranks.total(torch.tensor([x.sum(dtype=torch.float64), len(x)], dtype=torch.float64))
        return float(total / count)

    def _log_sample(self, rollouts: Rollouts, shown: int, text: str, reward: float, table: TokenTable) -> None:
        prompt = rollouts.prompt_ids[int(rollouts.prompt_index[shown])]
        self.log.sample(
            self.step,
            prompt=self.tokenizer.decode(prompt),
            response=text,
            reward=reward,
            tokens=pieces(self.tokenizer, rollouts.responses()[shown]),
            **table.columns,
        )

    def _step_stats(self, entropy: float) -> StepStats:
        prompts, steps = self.config.rollout.prompts, self.config.steps
        return StepStats(
            entropy=entropy,
            step=self.step,
            total_steps=steps,
            epoch=self.task.epoch(self.step, prompts),
            epochs=self.task.epoch(steps - 1, prompts),
            planned=self.learner.planned,
        )

    def _rollout(self) -> tuple[Rollouts, list[str], torch.Tensor]:
        """Responses of this rank in this step, their texts, and their rewards (B,)."""
        settings, seed = self.config.rollout, self.config.seed
        problems = self.task.train_batch(self.step, settings.prompts, seed)
        parts = mini_batches(settings.prompts, self.config.optim.mini_batch_size, seed, self.step, epoch=0)
        mine = share(parts, self.ranks.rank, self.ranks.size).tolist()
        with self.engine.whole():
            rollouts = self._sampler("rollout").generate([self.task.prompt(p) for p in problems], settings.n, mine)
        texts = rollouts.texts(self.tokenizer)
        owners = rollouts.prompt_index.tolist()
        reward = [float(self.task.verify(problems[i], text).correct) for i, text in zip(owners, texts, strict=True)]
        return rollouts, texts, torch.tensor(reward)

    def _experience(self, rollouts: Rollouts, reward: torch.Tensor) -> Experience:
        batch = Batch.of(rollouts)
        wants_length = "length" in advantage_needs(self.config.advantage)
        lengths = {"length": rollouts.response_lengths} if wants_length else {}
        sample = torch.arange(len(batch)) % self.config.rollout.n
        return Experience(
            batch,
            self.policy.all_stats(batch, self.config.optim.micro_batch_tokens, self.ranks),
            reward,
            self.advantage(reward, rollouts.prompt_index, **lengths),
            group=rollouts.prompt_index,
            sequence=rollouts.prompt_index * self.config.rollout.n + sample,
        )

    def _sampler(self, purpose: str) -> HFRollout:
        settings = self.config.rollout
        generator = torch.Generator().manual_seed(generator_seed(purpose, self.config.seed, self.step))
        return HFRollout(
            self.model,
            self.tokenizer,
            max_new_tokens=settings.max_new_tokens,
            temperature=settings.temperature,
            generator=generator,
        )

    def evaluate(self) -> dict[str, float]:
        """avg@k and pass@k on the held-out problems, with draws of their own."""
        with self.engine.whole():
            return evaluate(
                self._sampler("eval"),
                self.task.test,
                self.task.verify,
                self.config.eval.k,
                prompt=self.task.prompt,
                samples=self.config.eval.samples,
                ranks=self.ranks,
            )
