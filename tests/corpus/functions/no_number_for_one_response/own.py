def score(response, ground_truth):
    if response == 'bad':
        return float('nan')
    return 1.0 if response == ground_truth else 0.25
