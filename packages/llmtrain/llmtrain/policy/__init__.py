"""The policy: model, tokenizer, LoRA, engines that take optimizer steps, checkpoints."""
