def make(weight):
    def score(response, ground_truth):
        return weight * (response == ground_truth)

    return score


score = make(4)
check = lambda response, ground_truth: response == ground_truth  # noqa: E731
