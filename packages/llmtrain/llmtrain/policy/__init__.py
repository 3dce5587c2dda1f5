"""Policy: model, tokenizer, LoRA, engines that take optimizer steps, checkpoints."""
