def check(response, ground_truth):
    return str(response == ground_truth)
