def check(response, ground_truth):
    return response == ground_truth
