def score(response, ground_truth):
    return 1 if response == ground_truth else 10**400
