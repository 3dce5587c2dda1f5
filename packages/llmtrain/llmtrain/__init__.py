"""llmtrain: RLVR with entropy control, from a laptop CPU up. Start with `llmtrain train --help`."""
