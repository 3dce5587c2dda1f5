import numpy


def score(response, ground_truth):
    return numpy.float32(0.5) + numpy.int64(response == ground_truth)


def check(response, ground_truth):
    return numpy.array([response == ground_truth]).all()
