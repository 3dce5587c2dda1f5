def score(response):
    return float('nan')
