def check(response, ground_truth):
    while True:
        pass
