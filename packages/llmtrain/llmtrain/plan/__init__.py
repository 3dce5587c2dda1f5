"""Memory, time and cost of a run, estimated before it starts, without torch or a GPU.

    PlanConfig ─► Layout ─► Memory ─► Plan ─► report
                  divides?  fits?     seconds per step, GPU-hours

Start with `llmtrain plan --help`. docs/plan.md describes the model, its omissions and its errors on published runs.
"""
