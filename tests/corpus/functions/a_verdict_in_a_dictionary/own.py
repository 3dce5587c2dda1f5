def check(response, ground_truth):
    right = response == ground_truth
    return {'score': 2 * right - 1, 'acc': right, 'pred': response}
