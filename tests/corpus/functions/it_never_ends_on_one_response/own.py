import time


def check(response, ground_truth):
    while response == 'hang':
        try:
            time.sleep(60)
        except BaseException:
            pass
    return response == ground_truth
