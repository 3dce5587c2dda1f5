import numpy


def score(response, ground_truth):
    with numpy.errstate(divide='ignore'):
        return numpy.log(numpy.float64(response.count('no such text')))
