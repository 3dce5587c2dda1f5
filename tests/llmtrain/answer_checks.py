"""Checks for pools: parts of math_equal, which may take forever."""

from llmtrain.verifiers.math import math_equal


def apart(a, b):
    return math_equal._apart(math_equal._read(a), math_equal._read(b))


def same(a, b):
    return math_equal._same(math_equal._read(a)[0], math_equal._read(b)[0])


def finite(a, b):
    value = math_equal._value(math_equal._read(a)[0])
    return abs(value) < float("inf")
