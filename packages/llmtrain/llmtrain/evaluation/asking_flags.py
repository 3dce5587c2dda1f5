"""Flags of commands that ask a model questions of a file. Torch-free."""

import argparse


def add_model_flags(parser: argparse._ActionsContainer, samples: int) -> None:
    """Add the flags of a model and of its sampling. samples: default number of responses to each question."""
    parser.add_argument("--samples", type=int, default=samples, help="responses to each question (default %(default)s)")
    parser.add_argument("--temperature", type=float, default=1.0, help="sampling temperature (default %(default)s)")
    parser.add_argument("--top-p", type=float, default=1.0, help="nucleus sampling below 1")
    parser.add_argument("--max-new-tokens", type=int, default=1024, help="longest response (default %(default)s)")
    parser.add_argument("--max-prompt-length", type=int, default=1024, help="skip longer prompts (default %(default)s)")
    verifiers = "math, exact, regex, python, ifeval, a plug-in's, or module:function"
    parser.add_argument("--verifier", default="math", help=verifiers)
    parser.add_argument("--answer-after", default="", metavar="MARK", help='mark before an answer, such as "</think>"')
    parser.add_argument("--system-prompt", default="", help="system message for prompts without one")
    parser.add_argument("--instruction", default="", help="text added after each question")
    parser.add_argument("--chat-template", default="", metavar="FILE", help="Jinja template instead of the tokenizer's")
    parser.add_argument("--no-chat", action="store_true", help="pass plain-text prompts without a chat template")
    parser.add_argument("--rollout", default="hf", help="engine: hf (transformers), vllm, a plug-in's, or module:Class")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32", help="dtype of the weights")
    parser.add_argument("--batch-size", type=int, default=256, help="responses sampled together")
    parser.add_argument("--overwrite", action="store_true", help="start over instead of resuming")
