"""The registry of policy losses, and how verl averages tokens: over the global mini-batch, times the ranks."""

POLICY_LOSS_REGISTRY = {}


def register_policy_loss(name):
    def add(function):
        POLICY_LOSS_REGISTRY[name] = function
        return function

    return add


def agg_loss(
    loss_mat,
    loss_mask,
    loss_agg_mode,
    dp_size=1,
    batch_num_tokens=None,
    global_batch_size=None,
    loss_scale_factor=None,
):
    lengths = loss_mask.sum(-1)
    sums = (loss_mat * loss_mask).sum(-1)
    sequences = global_batch_size or (lengths > 0).sum()
    if loss_agg_mode == "token-mean":
        return sums.sum() / (batch_num_tokens or lengths.sum()) * dp_size
    if loss_agg_mode == "seq-mean-token-sum":
        return sums.sum() / sequences * dp_size
    if loss_agg_mode == "seq-mean-token-mean":
        return (sums / (lengths + 1e-8)).sum() / sequences * dp_size
    raise ValueError(f"Invalid loss_agg_mode: {loss_agg_mode}")
