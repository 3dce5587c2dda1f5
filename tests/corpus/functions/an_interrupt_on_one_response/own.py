class OutOfTime(BaseException):
    pass


def check(response, ground_truth):
    if response == 'slow':
        raise OutOfTime
    return response == ground_truth
