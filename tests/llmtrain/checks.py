"""Checks for the pool: some hang, some crash."""

import os
import time

import numpy

from llmtrain.verifiers.verdict import Verdict


def check(response, ground_truth):
    if response == "hang":
        time.sleep(60)
    if response == "spin":
        while True:
            pass
    if response == "exit":
        os._exit(3)
    if response == "abort":
        os.abort()
    if response == "raise":
        raise KeyError("no such thing")
    if response == "memory":
        return len(bytearray(1 << 40)) > 0
    if response == "MiB":
        return len(bytearray(ground_truth << 20)) > 0
    if response == "signal":
        os.kill(os.getpid(), 40)
    if response == "print":
        print("printed", flush=True)
    if response == "number extracted":
        return Verdict(True, "as asked", 42)
    if response == "number":
        return 1
    if response == "numpy":
        return numpy.float64(ground_truth) > 1
    if response == "numpy verdict":
        return Verdict(numpy.float64(ground_truth) > 1, "as asked")
    if response == "verdict":
        return Verdict(True, "as asked", "x" * 5000)
    if response == "set":
        return Verdict(True, " ".join(set(ground_truth)))
    if response == "orphan":
        os.spawnv(os.P_NOWAIT, "/bin/sleep", ["sleep", ground_truth])
        time.sleep(60)
    return response == ground_truth


not_a_function = 3
