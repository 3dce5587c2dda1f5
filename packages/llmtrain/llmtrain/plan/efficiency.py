"""Constants of the model, each with its reason. None was fitted to the runs of `published.py`."""

from .gpu import GIB

BANDWIDTH_SHARE = 0.685
"""Share of the memory bandwidth that decoding reaches: 1,397 of 2,039 GB/s on an A100, Llama-2-7B in bf16, batch 1
(README of gpt-fast). Everything else that is bound by memory is taken to reach as much."""
ALLREDUCE_SECONDS = 40e-6
"""One all-reduce of a decode step under tensor parallelism, beyond its bytes: gpt-fast's Llama-2-7B takes 7.34 ms a
token on two A100 where half of the time on one is 4.77 ms, with 64 all-reduces in between."""
HOST_SECONDS = 3e-3
"""Least time of a decode step, that of the scheduler on the CPU: batch 32 of an 8B model on an H200 left the GPU idle
for 24% of the time when the two did not overlap (Hugging Face, asynchronous continuous batching, 2026), about 3 ms
beside 11 ms of work. Here they overlap, so that only small batches of small models meet it."""
SAMPLER_PASSES = 6
"""Times the sampler goes through the fp32 logits of a step: scale, maximum, exponent and sum, divide, log-probability,
draw. An estimate."""
LINK_SHARE = 0.82
"""Share of a link that collectives of large buffers reach: 370 of NVLink's 450 GB/s, by NCCL's maintainers
(NVIDIA/nccl-tests, issue 212)."""
HOST_BANDWIDTH = 50e9
"""Bytes/s of host memory for each GPU: two sockets of some 200 GB/s over eight GPUs. An estimate."""
BACKWARD_ATTENTION = 2.5
"""Work of FlashAttention's backward pass for each of its forward pass: five matrix products beside two."""

RESERVED_BYTES = 4 * GIB
"""Of each GPU, for what is not counted: CUDA contexts of trainer and engine, NCCL's buffers, CUDA graphs, gaps of the
allocator. An estimate."""
MOST_UTILIZATION = 0.9
"""Share of a GPU that is given to the rollout engine where nothing else needs it; vLLM's old default."""
BATCHED_TOKENS = 8192
"""Tokens of a prefill that the engine's activations are sized for; vLLM has 8,192 or 16,384 on such GPUs."""
GRADIENT_BUCKET_BYTES = 8 * 10**8
"""What stays on the GPU when gradients go to the host: the engine's bucket of 2e8 of them, which travel in fp32."""

HEAD_CHUNK_TOKENS = 4096
HEAD_CHUNK_BYTES = 5 << 29
"""Tokens and bytes of fp32 logits that the fused head holds at once; `kernels.projection` has the same on CUDA."""
HEAD_BUFFERS = 2
"""Buffers of that size: logits, and what becomes their gradient."""
