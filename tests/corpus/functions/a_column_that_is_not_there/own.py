def score(response, difficulty):
    return difficulty
