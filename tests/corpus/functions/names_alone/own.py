def score(*, ground_truth, response, weight=2, **columns):
    return weight * columns['level'] * (response == ground_truth)
