def score(prompts, completions, **kwargs):
    return [float(len(completion)) for completion in completions]
