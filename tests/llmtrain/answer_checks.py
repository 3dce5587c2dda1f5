"""Checks for pools: parts of same_tree, which may take forever."""

from llmtrain.verifiers.math import math_reading, same_tree


def apart(a, b):
    return same_tree._apart(math_reading.read(a), math_reading.read(b))


def same(a, b):
    return same_tree._same(math_reading.read(a)[0], math_reading.read(b)[0])


def finite(a, b):
    value = same_tree._value(math_reading.read(a)[0])
    return abs(value) < float("inf")
