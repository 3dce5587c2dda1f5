def check(response, ground_truth):
    response == ground_truth
