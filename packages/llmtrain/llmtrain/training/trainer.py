"""Training loop.

    prompts ► rollout ► verifier ► advantages ► statistics ► controller.observe ► learner.update ► run log
       ▲                                                                                │
       └───────────────────────────── the same weights ─────────────────────────────────┘

Randomness is keyed by (seed, step, purpose), so the step is all the state needed to repeat it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from entrostat import StepStats
from entrostat.diagnostics import EntropyTrace, to_floats
from entrostat.logs.runlog import RunLog
from entrostat.numbers.draws import generator_seed
from entrostat.settings.commandline import OF_THE_DISK

from ..data.prompts import use_template, within
from ..evaluation.evaluator import Evaluator, Samples
from ..evaluation.paper_settings import in_training
from ..policy.bases import find_bases
from ..policy.checkpoint import last_saved, latest, load_state, save_checkpoint, unwritable
from ..policy.engine import NonFiniteError
from ..policy.engines import make_engine
from ..policy.lora import adapter_state, adapter_weights, attach, load_adapter_state, updates, whole_weights
from ..policy.model import load
from ..policy.policy import Policy
from ..policy.published import published
from ..policy.retention import to_keep
from ..process.clock import Clock
from ..process.cores import cpus, threads_that_help
from ..process.gpu_memory import empty_cache, peaks
from ..process.stop_signals import StopSignal, restore
from ..rollout.hf import stop_ids
from ..rollout.make import make_rollout_engine
from ..rollout.mismatch import mismatch
from ..rollout.rollout_engine import Rereadable, RolloutEngine, RolloutError, Sampler, Start
from ..sequences.rollouts import Rollouts
from ..sequences.samples import TokenTable, pieces
from ..settings.config import TrainConfig
from ..tasks import Task, get_task
from .check import prompt_limit
from .collect import Collector
from .experience import Annotator, Experience
from .guard import Guard, RollBackError
from .learner import Learner
from .partial_batches import make_batches
from .probes import Prober
from .responses import response_covariance
from .rules import keeps_groups, make_controller
from .telemetry import WatchedRunLog, traced
from .weights_proof import WeightsProof, mismatch_limit

Report = Callable[[int, dict[str, float]], None]
LOWER = {
    "rollout": "lower rollout.prompts, rollout.max_new_tokens or rollout.gpu_memory_utilization",
    "eval": "lower eval.samples or eval.max_new_tokens",
    "sync": "lower rollout.gpu_memory_utilization",
    "forward": "lower optim.micro_batch_tokens, or turn engine.gradient_checkpointing on",
    "optimizer": "raise engine.zero_stage, or turn engine.offload_optimizer on",
}
"""Settings that reduce memory use, by phase."""


class TrainingStoppedError(RuntimeError):
    """Training cannot continue; the message names the step and the last checkpoint."""


class NoLog:
    """Run log of ranks other than 0: a no-op, because rank 0 writes."""

    def log(self, step: int, metrics: Mapping[str, Any]) -> None: ...

    def sample(self, step: int, **fields: Any) -> None: ...

    def probes(self, step: int, answers: Sequence[Mapping[str, Any]]) -> None: ...

    def close(self) -> None: ...


class Trainer:
    """Training run; `resume` continues from the newest checkpoint in `config.out`."""

    def __init__(
        self, config: TrainConfig, model_path: str | Path, resume: bool = False, roll_backs: int | None = None
    ) -> None:
        """roll_backs: how often the run was rolled back; None takes the number in the checkpoint."""
        self._threads = torch.get_num_threads()
        torch.set_num_threads(config.threads or min(self._threads, cpus()))
        self.config = config
        self.controller = make_controller(config)
        source = latest(config.out) if resume else Path(model_path)
        state = load_state(source) if resume else None
        self.bases = find_bases(config, self.controller.needs, source, state)
        base = Path(self.bases["base"]["folder"]) if config.model.lora_rank else source
        self.model, self.tokenizer = self._load_model(base, state)
        if config.device == "cpu" and not config.threads:
            torch.set_num_threads(min(torch.get_num_threads(), self._threads_that_help()))
        self.task = self._fitting(get_task(config))
        self.policy = Policy(self.model, config.rollout.temperature, layout=config.optim.layout)
        known = state["roll_backs"] if state and "roll_backs" in state else 0
        self.roll_backs = known if roll_backs is None else roll_backs
        lowered = replace(config.optim, lr=config.optim.lr * config.guard.lr_factor**self.roll_backs)
        self.engine = make_engine(config, self.policy, lowered, config.total_updates)
        self.ranks = self.engine.ranks
        self.clock = Clock(config.device)
        limits = replace(config.guard, mismatch_above=mismatch_limit(config))
        self.guard = Guard(limits, prints=self.ranks.rank == 0)
        self.learner = Learner(
            self.policy,
            self.engine,
            self.controller,
            config.optim,
            seed=config.seed,
            clock=self.clock,
            updates=config.updates,
            guard=self.guard,
        )
        self.annotator = Annotator(
            config,
            self.policy,
            self.ranks,
            self.clock,
            self.controller,
            reference=Path(self.bases["reference"]["folder"]) if "reference" in self.bases else None,
            checkpoint=source if resume else None,
        )
        self.trace = EntropyTrace()
        self.step = 0
        if state:
            self._check_same(source)
            self._restore(state, source)
        self._saved_step = self.step if state else None
        self.rollout = self._start_rollout(base if config.adapter_rank else source)
        batches = make_batches(config, self.task, self.tokenizer, self.rollout, self.ranks, self.clock)
        self.proof = WeightsProof(batches, self.policy, self.rollout, self.ranks)
        self.collector = Collector(batches, whole_groups=keeps_groups(config))
        self.evaluator = self._evaluator()
        self.prober = Prober(config, self.task, self.collector, self.annotator, self.controller)
        torch.manual_seed(config.seed)
        if state:
            self.collector.batches.resume(state["batches"], state.get("in_flight", []))
            self.evaluator.start = state["prompt_entropy"]
            torch.set_rng_state(state["rng"])
        self.log: RunLog | NoLog = NoLog()
        if self.ranks.rank == 0:
            self.log = WatchedRunLog(config, resume_at=self.step if resume else None)
        self._stop = StopSignal()
        self.stopped_by = 0
        """Number of the signal that stopped the run; 0 if none did."""

    def _load_model(self, base: Path, state: dict[str, Any] | None) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        """Return model and tokenizer from the folder `base`, with LoRA updates if configured."""
        config = self.config
        alone = config.engine.name == "torch"
        dtype = torch.bfloat16 if config.engine.bf16 and not alone else torch.float32
        trusted = config.model.trust_remote_code
        model, tokenizer = load(base, dtype=dtype, device=config.device, trust_remote_code=trusted)
        if config.model.lora_rank:
            attach(model, config.model, config.seed)
        if state:
            load_adapter_state(model, state["lora"])
        use_template(tokenizer, config.data)
        model.train()
        if alone:  # DeepSpeed casts and partitions it first
            torch.nn.Module.to(model, torch.device(config.device))
        return model, tokenizer

    def _threads_that_help(self) -> int:
        layers = getattr(self.model.config.get_text_config(), "num_hidden_layers", None) or 1
        rollout = self.config.rollout
        table: Any = self.model.get_input_embeddings()
        inside = sum(weight.numel() for weight in self.model.parameters()) - table.weight.numel()
        return threads_that_help(inside // layers, rollout.prompts * rollout.n // self.config.nproc)

    def _start_rollout(self, folder: Path) -> RolloutEngine:
        """Start the rollout engine with the model in a folder, after all permanent GPU memory is allocated.

        vLLM takes memory that is free when it starts, and counts memory that others allocate meanwhile as its own.
        """
        config = self.config
        later = config.topology.restarts or config.topology.elastic_engines
        self.kept = folder if later else None  # engines that start later load it
        empty_cache()
        self.ranks.barrier()
        start = Start(
            folder=folder,
            config=config.rollout,
            stop_token_ids=stop_ids(self.model, self.tokenizer, config.rollout.stop_token_ids),
            device=config.device,
            rank=self.ranks.rank,
            model=self.model,
            tokenizer=self.tokenizer,
            whole=self.engine.whole,
            sleep_level=config.sleep_level,
            lora_rank=config.adapter_rank,
            trust_remote_code=config.model.trust_remote_code,
        )
        return make_rollout_engine(config, start, self.ranks)

    def _fitting(self, task: Task) -> Task:
        """Return the task without file questions whose prompts are too long; start its verifier and try it."""
        if self.config.data.train_files:
            limit = prompt_limit(self.config)
            fits = partial(within, self.tokenizer, limit=limit)
            task = task.keep(fits, f"their prompts have more than data.max_prompt_length {limit} tokens")
        task.try_out(self.config.rollout.n)
        return task

    def _evaluator(self) -> Evaluator:
        config = self.config
        return Evaluator(
            policy=self.policy,
            questions=self.task.test,
            verify=self.task.verify,
            failures=lambda: self.task.verifier.failures,
            sampling=in_training(config),
            k=0 if config.eval.settings else config.eval.k,
            micro_batch_tokens=config.optim.micro_batch_tokens,
            ranks=self.ranks,
        )

    # State --------------------------------------------------------------------------------------------------------

    def _check_same(self, checkpoint: Path) -> None:
        """Raise ValueError unless all ranks go on from the same checkpoint: a file system may show one late."""
        seen = self.ranks.gather([checkpoint.name])
        if other := next((rank for rank, name in enumerate(seen) if name != seen[0]), None):
            raise ValueError(
                f"the newest checkpoint of {self.config.out} is {seen[0]} for rank 0 and {seen[other]} for rank {other}"
                ": resume again once their file systems show the same files"
            )

    def _restore(self, state: dict[str, Any], checkpoint: Path) -> None:
        self.step = state["step"]
        self.engine.load_state_dict(state["engine"])
        self.engine.load_shards(checkpoint)
        self.controller.load_state_dict(state["controller"])
        self.annotator.load_state_dict(state["annotator"], checkpoint)
        self.learner.planned = state["planned"]
        self.trace.load_state_dict(state["trace"])

    def save(self) -> Path:
        """Write a checkpoint of the state after the last complete step."""
        with self.engine.whole(updates(self.model).values()):
            lora = adapter_state(self.model)
        state = {
            "engine": self.engine.state_dict(),
            "controller": self.controller.state_dict(),
            "planned": self.learner.planned,
            "batches": self.collector.batches.used,
            "in_flight": self.collector.batches.in_flight(),
            "lora": lora,
            "bases": self.bases,
            "annotator": self.annotator.state_dict(),
            "trace": self.trace.state_dict(),
            "prompt_entropy": self.evaluator.start,
            "rng": torch.get_rng_state(),
            "roll_backs": self.roll_backs,
        }
        models = {"": (self.policy, self.engine)} | self.annotator.learning
        path = save_checkpoint(self.config.out, self.step, models, self.tokenizer, state, self._to_keep)
        self._saved_step = self.step
        return path

    def _to_keep(self) -> set[Path]:
        """Return the checkpoints that stay, with the one that restarted engines load."""
        return to_keep(self.config.out, self.config.checkpoint) | ({self.kept} if self.kept else set())

    # The loop -----------------------------------------------------------------------------------------------------

    def run(self, report: Report = lambda step, metrics: None) -> None:
        """Train to the last step or to the first signal that stops (see `StopSignal`), and write a checkpoint.

        report: called after every step with its metrics.
        Raises TrainingStoppedError if a loss is not finite, memory or disk run out or the rollout engine fails; the
        last checkpoint stays. Raises RollBackError if a guard asks for that.
        """
        previous = self._stop.heed(local=self.config.topology.name == "local")
        try:
            if self._saved_step is None and self.config.guard.does("roll_back"):
                self.save()
            while self.step < self.config.steps and not self._is_stopped():
                with traced(self.config, self.step, self.ranks.rank):
                    metrics = self._train_step()
                self.log.log(self.step, metrics)
                report(self.step, metrics)
                self.step += 1
                stops_for = self.guard.stops_for
                if self.step % self.config.save_every == 0 or stops_for:
                    self.save()
                if stops_for:
                    raise TrainingStoppedError(f"step {self.step - 1}: {stops_for}; {last_saved(self.config.out)}")
            if self._saved_step != self.step:
                self.save()
            if not self.interrupted:
                self._look_at_the_end()
        except Exception as error:
            if isinstance(error, NonFiniteError) and self.config.guard.non_finite == "roll_back":
                raise RollBackError(f"step {self.step}: {error}") from None
            if isinstance(error, RollBackError):
                raise RollBackError(f"step {self.step}: {error}") from None
            said = self._reason(error)
            if not said:
                raise
            raise TrainingStoppedError(f"step {self.step}: {said}; {last_saved(self.config.out)}") from None
        finally:
            restore(previous)
            torch.set_num_threads(self._threads)
            self.rollout.close()
            self.task.close()
            with suppress(OSError):  # a full disk is reported already
                self.log.close()

    def _reason(self, error: Exception) -> str:
        """Return the reason why training cannot continue; empty for an unknown error."""
        if isinstance(error, NonFiniteError | RolloutError):
            return str(error)
        if isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error):
            phase = self.clock.failed or "other"
            return f"out of memory in phase {phase!r}: {LOWER.get(phase, LOWER['forward'])}"
        if isinstance(error, OSError) and (error.filename or error.errno in OF_THE_DISK):
            return f"{error.filename or self.config.out}: {error.strerror}"
        return unwritable(self.config.out)  # torch and safetensors raise other errors for a full disk or quota

    def _is_stopped(self) -> bool:
        """Return True, on all ranks, if a signal has reached one of them."""
        self.stopped_by = self.ranks.most(self._stop.number)
        return self.stopped_by > 0

    @property
    def interrupted(self) -> bool:
        """True if a signal ended the run before its last step."""
        return self.step < self.config.steps

    def _train_step(self) -> dict[str, float]:
        with self.clock.phase("other"):
            self._send_weights()
            asked, probed = self._held_out()
            found = self.collector.collect(self.step)
            self._release()
            evaluated = self._measured(asked)
            rollouts = found.rollouts
            self.policy.support = self.controller.support  # of the last observation, in statistics and in the update
            experience, learned = self.annotator.experience(found)
            entropy = self.ranks.mean(experience.stats.entropy)
            gap = {} if experience.sampled else mismatch(experience.stats.logp, rollouts.logp, self.ranks)
            near = self.guard.allows("mismatch", gap.get("mismatch/logp_gap", 0.0))
            proceeds = self.guard.allows("entropy", entropy) and near
            self.controller.observe(self._step_stats(entropy))
            metrics = {
                **to_floats(self.trace.observe(entropy)),
                **found.metrics,
                "finished": self.ranks.mean(rollouts.finished),
                **self._staleness(rollouts),
                **learned,
                "covariance/response": response_covariance(
                    experience.stats.logp, rollouts.response_lengths, found.advantage, rollouts.prompt_index, self.ranks
                ),
                **gap,
                **{key: float(value) for key, value in self.controller.metrics().items()},
            }
            if probed is not None:
                self.log.probes(self.step, self.prober.answers(probed, self.step))
            shown, table = self._shown(experience)
            take = partial(self.learner.update, experience, self.step, watch=table.see)
            updates = take() if proceeds else self.learner.leave_out()
            self.trace.expect(updates.get("flow/total"))
        times = self.clock.read()
        seconds = sum(value for name, value in times.items() if name not in ("time/eval", "time/probes"))
        speed = found.metrics["tokens"] / seconds
        self._log_sample(rollouts, shown, found.reward, table)
        return (evaluated | metrics | updates | metrics | peaks()) | {
            "tokens_per_second": speed,
            "tokens_per_second_per_gpu": speed / (self.ranks.size + self.config.engine_gpus),
            **self._slowest(times),
            **self.guard.metrics(),
            **({"guard/roll_backs": float(self.roll_backs)} if self.config.guard.does("roll_back") else {}),
            **times,
            "time/step": seconds,
        }

    def _slowest(self, times: dict[str, float]) -> dict[str, float]:
        """Return which of several ranks took longest for its own work, and how much longer than their median."""
        if self.ranks.size == 1:
            return {}
        own = self.ranks.gather([times.get("time/rollout", 0.0) + times.get("time/forward", 0.0)])
        slowest = max(range(len(own)), key=own.__getitem__)
        return {"time/slowest_rank": float(slowest), "time/behind": own[slowest] - median(own)}

    def _staleness(self, rollouts: Rollouts) -> dict[str, float]:
        """Return metrics of the age of the weights that drew each token, in rollout steps."""
        age = self.step - rollouts.version
        most = self.ranks.most(int(age.max()) if len(age) else 0)
        return {"staleness/mean": self.ranks.mean(age), "staleness/max": float(most)}

    def _shown(self, experience: Experience) -> tuple[int, TokenTable]:
        """Return a sequence for the sample log, with a nonzero advantage if there is one, and its token table."""
        if not len(experience.batch):
            return 0, TokenTable(-1)
        shown = int(experience.advantage.ne(0).byte().argmax())
        return shown, TokenTable(int(experience.sequence[shown]))

    def _log_sample(self, rollouts: Rollouts, shown: int, reward: torch.Tensor, table: TokenTable) -> None:
        if not len(rollouts):
            return
        one = rollouts.take(torch.tensor([shown]))
        self.log.sample(
            self.step,
            prompt=self.tokenizer.decode(one.prompt_ids[int(one.prompt_index)]),
            response=one.texts(self.tokenizer)[0],
            reward=reward[shown].item(),
            tokens=pieces(self.tokenizer, one.responses()[0]),
            **table.columns,
        )

    def _step_stats(self, entropy: float) -> StepStats:
        prompts, steps = self.collector.batches.size, self.config.steps
        return StepStats(
            entropy=entropy,
            step=self.step,
            total_steps=steps,
            epoch=self.task.epoch(self.step, prompts),
            epochs=self.task.epoch(steps - 1, prompts),
            planned=self.learner.planned,
        )

    def _send_weights(self) -> None:
        """Send the weights of this step to the rollout engine unless it has them."""
        if self.rollout.version == self.step:
            return
        with self.clock.phase("sync"):
            self.rollout.update(Rereadable(self._weights), self.step)
            self.proof.after_update()

    def _weights(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield the weights as the rollout engine takes them."""
        if self.config.adapter_rank:
            return adapter_weights(self.model, self.engine.whole)
        whole = whole_weights(self.model, self.engine.whole)
        return published(self.model, whole) if self.rollout.published else whole

    def _release(self) -> None:
        """Release the GPU memory of the rollout engine."""
        with self.clock.phase("sync"):
            self.rollout.release()

    def _look_at_the_end(self) -> None:
        """Log evaluation and probes of the policy after the last update, if they are asked for.

        Probes are weighted by the controller's last observation.
        """
        if not (self.config.eval.every or self.prober.is_due(self.step)):
            return
        self._send_weights()
        asked, probed = self._held_out(last=True)
        self._release()
        if evaluated := self._measured(asked):
            self.log.log(self.step, evaluated)
        if probed is not None:
            self.log.probes(self.step, self.prober.answers(probed, self.step))

    def _held_out(self, last: bool = False) -> tuple[Samples | None, Rollouts | None]:
        """Return the responses for evaluation and those of probes, of a step in which they are due.

        They come from the engine while it is awake for the rollout: weights are sent once for all.
        """
        every, asked = self.config.eval.every, None
        if every and (last or self.step % every == 0):
            seed = generator_seed("eval", self.config.seed, self.step)
            with self.clock.phase("eval"):
                asked = self.evaluator.sample(Sampler(self.rollout, self.tokenizer, seed, self.ranks.size))
        return asked, self.prober.sample(self.rollout) if self.prober.is_due(self.step) else None

    def _measured(self, asked: Samples | None) -> dict[str, float]:
        """Return the metrics of an evaluation's responses under the policy; none for None."""
        if asked is None:
            return {}
        with self.clock.phase("eval"):
            found = self.evaluator.measure(asked)
        wanted = self.config.checkpoint.keep_best
        if self.step == 0 and wanted.startswith("eval/") and wanted not in found:
            names = ", ".join(key for key in found if not key.endswith(("/low", "/high")))
            raise TrainingStoppedError(f"checkpoint.keep_best {wanted} is not among the metrics: {names}")
        return found
