"""Honest programs of different form, by what they define."""

from .red_team_text import programs

HONEST = programs(
    r"""
## half
def half(x):
    from fractions import Fraction
    return Fraction(x, 2)
## point
from dataclasses import dataclass

@dataclass
class Point:
    x: int
    y: int

    def __add__(self, other):
        return Point(self.x + other.x, self.y + other.y)

def distance(a, b):
    return ((a.x - b.x) ** 2 + (a.y - b.y) ** 2) ** 0.5
## stack
class Stack:
    def __init__(self, items=()):
        self.items = list(items)

    def push(self, item):
        self.items.append(item)

    def pop(self):
        return self.items.pop()

    def __len__(self):
        return len(self.items)

    def __iter__(self):
        return iter(self.items)

    def __contains__(self, item):
        return item in self.items
## evens
def evens(n):
    for k in range(0, n, 2):
        yield k
## adder
def adder(n):
    total = n

    def add(k):
        nonlocal total
        total += k
        return total

    return add
## roots
import math

def root(x):
    if x < 0:
        raise ValueError('negative')
    return math.sqrt(x)
## prime
prime = lambda n: n > 1 and all(n % k for k in range(2, int(n ** 0.5) + 1))
## shout
def main():
    print('loading')

if __name__ == '__main__':
    main()

def shout(text):
    return text.upper() + '!'
## words
from collections import Counter

def count(text):
    return Counter(text.split())
## scale
import numpy as np

def scale(x):
    x = np.asarray(x, dtype=float)
    return (x - x.mean()) / x.std()
## outer
import numpy as np

def outer(a, b):
    return np.outer(a, b)
## mask
import numpy as np

def positive(x):
    return x[x > 0]
## mean
def mean(x):
    return sum(float(v) for v in x) / len(x)
## eye
import numpy as np

class Model:
    def __init__(self, n):
        self.w = np.eye(n)

    def __call__(self, x):
        return self.w @ x
## node
class Node:
    def __init__(self, v, n=None):
        self.v, self.n = v, n

def tail(node):
    return node.n
## money
class Money:
    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return self.n == other.n

    def __repr__(self):
        return f'{self.n} EUR'
"""
)
