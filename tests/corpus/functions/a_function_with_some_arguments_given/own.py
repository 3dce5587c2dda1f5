import functools


def weighted(weight, response, ground_truth):
    return weight * (response == ground_truth)


class Check:
    def __call__(self, response, ground_truth):
        return response == ground_truth


score, check = functools.partial(weighted, 0.5), Check()
