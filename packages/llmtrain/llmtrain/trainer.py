"""The training loop.

    prompts ► rollout ► verifier ► advantages ► statistics ► controller.observe ► learner.update ► run log
       ▲                                                                                │
       └───────────────────────────── the same weights ─────────────────────────────────┘

Randomness is keyed by (seed, step, purpose), so nothing but the step has to be remembered to repeat it.
"""

import signal
from collections import deque
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
from .clock import Clock
from .config import TrainConfig, to_dict
from .engine import Engine, NonFiniteError, TorchEngine
from .evaluate import evaluate
from .launch import world_size
from .learner import Experience, Learner
from .mini_batch import mini_batches, share
from .mismatch import mismatch
from .model import load
from .policy import Policy
from .ranks import join
from .rollout import Rollouts
from .rollout_engine import HFEngine, Pending, Request, RolloutEngine, RolloutError, Sampler
from .rollout_engine import check as check_rollouts
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


def make_rollout_engine(
    config: TrainConfig,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    engine: Engine,
    source: str | Path,
) -> RolloutEngine:
    """The rollout engine of a run; source: folder of the model that it starts from."""
    return HFEngine(model, tokenizer, config.rollout, rank=engine.ranks.rank, whole=engine.whole)


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
        self.rollout = make_rollout_engine(config, self.model, self.tokenizer, self.engine, source)
        self.clock = Clock(config.device)
        self.learner = Learner(self.policy, self.engine, self.controller, config.optim, config.seed, self.clock)
        self.trace = EntropyTrace()
        self.step = self.asked = 0
        self.pending: deque[tuple[list[Any], Request, Pending]] = deque()
        """What was asked for and is not trained on yet: problems, request, answer."""
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
        except (NonFiniteError, RolloutError) as error:
            good = checkpoints(self.config.out)
            where = f"last good checkpoint: {good[-1]}" if good else "no checkpoint was written yet"
            raise TrainingStoppedError(f"step {self.step}: {error}; {where}") from None
        finally:
            signal.signal(signal.SIGINT, previous)
            self.rollout.close()
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
        with self.clock.phase("other"):
            rollouts, texts, reward = self._rollout()
            experience = self._experience(rollouts, reward)
            entropy = self._mean(experience.stats.entropy)
            self.controller.observe(self._step_stats(entropy))
            metrics = {
                **to_floats(self.trace.observe(entropy)),
                "reward": self._mean(reward),
                "response_length": self._mean(rollouts.response_lengths),
                "finished": self._mean(rollouts.finished),
                "staleness": self.step - rollouts.version,
                **mismatch(experience.stats.logp, rollouts.logp, self.ranks),
                **{key: float(value) for key, value in self.controller.metrics().items()},
            }
            shown = int(experience.advantage.ne(0).byte().argmax())  # the first with an advantage, or the first
            table = TokenTable(int(experience.sequence[shown]))
            updates = self.learner.update(experience, self.step, watch=table.see)
            self.trace.expect(updates.get("flow/total"))
        times = self.clock.read()
        seconds = sum(times.values()) - times.get("time/eval", 0.0)
        tokens = int(self.ranks.total(rollouts.response_lengths.sum()))
        self._log_sample(rollouts, shown, texts[shown], reward[shown].item(), table)
        return (metrics | updates | metrics) | {
            "tokens_per_second": tokens / seconds,
            "tokens_per_second_per_gpu": tokens / seconds / self.ranks.size,
            **times,
            "time/step": seconds,
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

    def _send_weights(self) -> None:
        """Let the rollout engine have the weights of this step."""
        if self.rollout.version != self.step:
            with self.clock.phase("sync"), self.engine.whole():
                self.rollout.update(self.model.named_parameters(), self.step)

    def _ask(self) -> None:
        """Ask for the responses of this rollout step and of as many after it as may be drawn from its weights."""
        settings, seed = self.config.rollout, self.config.seed
        last = min(self.step + self.config.topology.staleness, self.config.steps - 1)
        for step in range(max(self.asked, self.step), last + 1):
            problems = self.task.train_batch(step, settings.prompts, seed)
            parts = mini_batches(settings.prompts, self.config.optim.mini_batch_size, seed, step, epoch=0)
            shares = [share(parts, rank, self.ranks.size).tolist() for rank in range(self.ranks.size)]
            prompts = [self.task.prompt(problem) for problem in problems]
            request = Request(prompts, settings.n, shares, generator_seed("rollout", seed, step))
            self.pending.append((problems, request, self.rollout.submit(request)))
            self.asked = step + 1

    def _rollout(self) -> tuple[Rollouts, list[str], torch.Tensor]:
        """Responses of this rank in this step, their texts, and their rewards (B,)."""
        self._send_weights()
        with self.clock.phase("rollout"):
            self._ask()
            problems, request, answer = self.pending.popleft()
            rollouts = answer()
        check_rollouts(
            rollouts, request, self.config.rollout, self.step - self.config.topology.staleness, self.ranks.rank
        )
        with self.clock.phase("verify"):
            texts = rollouts.texts(self.tokenizer)
            owners = rollouts.prompt_index.tolist()
            reward = [float(self.task.verify(problems[i], text).correct) for i, text in zip(owners, texts, strict=True)]
        return rollouts, texts, torch.tensor(reward)

    def _experience(self, rollouts: Rollouts, reward: torch.Tensor) -> Experience:
        batch = Batch.of(rollouts)
        wants_length = "length" in advantage_needs(self.config.advantage)
        lengths = {"length": rollouts.response_lengths} if wants_length else {}
        sample = torch.arange(len(batch)) % self.config.rollout.n
        with self.clock.phase("forward"):
            stats = self.policy.all_stats(batch, self.config.optim.micro_batch_tokens, self.ranks)
        return Experience(
            batch,
            stats,
            reward,
            self.advantage(reward, rollouts.prompt_index, **lengths),
            group=rollouts.prompt_index,
            sequence=rollouts.prompt_index * self.config.rollout.n + sample,
            rollout_logp=rollouts.logp.to(stats.logp),
            from_rollout=self.config.rollout.old_logp == "rollout",
        )

    def evaluate(self) -> dict[str, float]:
        """avg@k and pass@k on the held-out problems, with draws of their own."""
        self._send_weights()
        seed = generator_seed("eval", self.config.seed, self.step)
        with self.clock.phase("eval"):
            return evaluate(
                Sampler(self.rollout, self.tokenizer, seed, self.ranks.size),
                self.task.test,
                self.task.verify,
                self.config.eval.k,
                prompt=self.task.prompt,
                samples=self.config.eval.samples,
                ranks=self.ranks,
            )
