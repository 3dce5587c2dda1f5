"""What a run needs and costs, before anyone pays for it: no torch, no GPU.

    PlanConfig ─► Layout ─► Memory ─► Plan ─► report
                  divides?  fits?     seconds a step, GPU-hours

`llmtrain plan --help` is the way in; docs/plan.md says what the model is, what it leaves out and how far off it was.
"""
