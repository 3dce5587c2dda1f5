def score(response):
    return float(response) if response != 'x' else 1 / 0
