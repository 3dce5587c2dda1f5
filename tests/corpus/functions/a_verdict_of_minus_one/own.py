def check(response, ground_truth):
    return 1.0 if response == ground_truth else -1.0
