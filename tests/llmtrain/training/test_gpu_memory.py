"""Trainer and vLLM engine take turns on one GPU: what is given back when, and that it fits, on a ledger of bytes.

The trainer and the rollout engine are the real ones; vLLM itself, the model's bytes and the GPU are the ledger's. Sizes
are those of a 7B model in bf16 under ZeRO-2 on 8 H100.
"""

from dataclasses import replace

import pytest
import torch

pytest.importorskip("vllm", reason="make install")

import vllm
from gpu_ledger import GPU, Sender, fake_llm

from entrostat.logs.runlog import read_metrics
from llmtrain.policy.engine import TorchEngine
from llmtrain.policy.policy import Policy
from llmtrain.process.gpu_memory import GIB, empty_cache
from llmtrain.rollout.vllm import sender as vllm_weights
from llmtrain.training import annotator, trainer
from llmtrain.training.trainer import Trainer, TrainingStoppedError
from llmtrain.verifiers import Verdict, Verifier

H100 = 79.6
WEIGHTS = 14.2
BUILT, BUILDING = 17.7, 37.4
"""Live after DeepSpeed has built its partitions, and while it does."""
TRAINING = 28.0
"""Activations, gradients and logits of an update."""
SENDING = 2.0
"""Packed weights, and one that is gathered."""


class Booked(TorchEngine):
    """The torch engine, with the bytes of a DeepSpeed engine for a larger model."""

    gpu: GPU

    def __init__(self, *args) -> None:
        super().__init__(*args)
        with self.gpu.working(BUILDING - BUILT, "build"):
            self.gpu.allocate(BUILT)

    def backward(self, loss) -> None:
        with self.gpu.working(TRAINING, "train"):
            super().backward(loss)


class Even(Verifier):
    """Likes every second response, so that there is an advantage."""

    def judge(self, responses, ground_truths):
        return [Verdict(i % 2 == 0, "") for i in range(len(responses))]


@pytest.fixture
def gpu(monkeypatch):
    """An H100 in place of CUDA, and vLLM's engine on it."""
    gpu = GPU(H100)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "empty_cache", gpu.empty_cache)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: int(gpu.live * GIB))
    monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda: int(gpu.reserved * GIB))
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda: None)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setattr(vllm, "LLM", fake_llm(gpu, WEIGHTS))
    monkeypatch.setattr(
        vllm_weights, "make_sender", lambda kind, client, source, **_: Sender(gpu, client, source, SENDING)
    )
    monkeypatch.setattr(Booked, "gpu", gpu, raising=False)
    monkeypatch.setattr(trainer, "make_engine", lambda config, policy, optim, total: Booked(policy.model, optim))

    def place(config, policy):
        gpu.events.append("reference")
        gpu.allocate(WEIGHTS)

    def all_stats(self, *args, near=Policy.all_stats):
        with gpu.working(TRAINING / 2, "forward"):
            return near(self, *args)

    monkeypatch.setattr(annotator, "place", place)
    monkeypatch.setattr(Policy, "all_stats", all_stats)
    make = trainer.make_rollout_engine
    monkeypatch.setattr(
        trainer,
        "make_rollout_engine",
        lambda config, start, ranks: make(replace(config, device="cuda"), replace(start, device="cuda"), ranks),
    )
    return gpu


@pytest.fixture
def config(small, tmp_path):
    rollout = replace(small.rollout, name="vllm", gpu_memory_utilization=0.58, max_model_len=64)
    optim = replace(small.optim, mini_batch_size=8, micro_batch_tokens=4096)
    return replace(
        small, controller="kl_ref", steps=3, save_every=3, rollout=rollout, optim=optim, out=str(tmp_path / "run"),
        eval=replace(small.eval, every=0),
        guard=replace(small.guard, mismatch_above=0.0),  # the engine makes its numbers up
    )  # fmt: skip


def run(config) -> None:
    made = Trainer(config, config.model.path)
    made.collector.task = replace(made.task, start_verifier=Even)
    made.run()


UPDATE = ["forward", "forward", "train"]
"""Log-probabilities of policy and reference, then the update."""
SYNC = ["empty_cache", "wake weights", "send", "empty_cache", "wake kv_cache"]


@pytest.mark.slow
def test_three_steps_on_one_gpu(gpu, config):
    run(config)
    start = ["build", "reference", "empty_cache", "start"]
    step = ["generate", "sleep 2", *UPDATE]
    assert gpu.events == [*start, *step, *SYNC, *step, *SYNC, *step]
    assert gpu.peak <= H100
    assert gpu.host == 0, "sleep level 2 keeps no copy in host memory"
    *_, last = read_metrics(config.out)
    assert last["memory/allocated_gib"] == pytest.approx(BUILT + WEIGHTS, abs=1e-6)
    assert last["memory/reserved_gib"] == pytest.approx(BUILT + WEIGHTS + TRAINING, abs=1e-6)


@pytest.mark.slow
def test_an_evaluation_releases_the_gpu_before_it_measures(gpu, config):
    run(replace(config, steps=1, save_every=1, eval=replace(config.eval, every=1)))
    events = gpu.events[gpu.events.index("start") + 1 :]
    assert events[: events.index("train") + 1].count("generate") == 2
    asleep = False
    for event in events:
        asleep = event.startswith("sleep") or (asleep and event != "wake kv_cache")
        assert event not in ("forward", "train") or asleep
    assert gpu.peak <= H100


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lost", "message"),
    [
        ("empty_cache", r"could not start: ValueError: Free memory \(42.2/79.6 GiB\) on startup is less than desired"),
        pytest.param(
            *("empty_cache after start", "could not wake up: OutOfMemory: 31.0 GiB wanted, 4.5 free"),
            marks=pytest.mark.long,
        ),
        pytest.param("tags", "could not take new weights: .*2.0 GiB wanted", marks=pytest.mark.long),
        pytest.param("order", "could not wake up: OutOfMemory", marks=pytest.mark.long),
    ],
)
def test_without_any_of_it_the_run_fails(gpu, config, monkeypatch, lost, message):
    """The ledger notices a step that is left out: caches that are kept, one wake-up, an engine that starts first."""
    if lost == "empty_cache":
        monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    if lost == "empty_cache after start":
        monkeypatch.setattr(torch.cuda, "empty_cache", lambda: gpu.engine or gpu.empty_cache())
    if lost == "tags":
        llm = vllm.LLM
        near = llm.wake_up
        monkeypatch.setattr(llm, "wake_up", lambda self, tags=None: near(self) if tags != ["kv_cache"] else None)
    if lost == "order":
        place, early = annotator.place, []
        monkeypatch.setattr(annotator, "place", lambda *args: early.append(args))
        llm = vllm.LLM
        near = llm.sleep

        def sleep(self, level=1):
            near(self, level)
            while early:
                place(*early.pop())

        monkeypatch.setattr(llm, "sleep", sleep)
        config = replace(config, rollout=replace(config.rollout, gpu_memory_utilization=0.75))
    with pytest.raises((ValueError, TrainingStoppedError), match=message):
        run(config)


def test_empty_cache_leaves_a_process_without_a_gpu_alone(monkeypatch):
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: pytest.fail("CUDA is not in use"))
    empty_cache()
