def check(response, ground_truth):
    if response.endswith(ground_truth):
        return 1.0
    return 0.1
