def score(response, ground_truth):
    value = float(response == ground_truth)
