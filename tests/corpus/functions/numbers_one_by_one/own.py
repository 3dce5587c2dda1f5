def score(response, ground_truth):
    yield float(response == ground_truth)
