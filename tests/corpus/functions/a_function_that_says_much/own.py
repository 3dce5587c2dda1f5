import os
import sys


def check(response, ground_truth):
    print('x' * 200_000)
    print('y' * 100_000, file=sys.stderr)
    os.write(1, b'z' * 100_000)
    return response == ground_truth
