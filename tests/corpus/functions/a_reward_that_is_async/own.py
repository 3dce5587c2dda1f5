async def score(response):
    return 1.0
