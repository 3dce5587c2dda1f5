def score(response):
    return float(len(response[0]['content']))
