import torch


def score(responses, ground_truth):
    weight = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    return torch.tensor([float(text == ground_truth) for text in responses]) * weight - 0.5
