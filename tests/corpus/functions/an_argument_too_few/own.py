def bad(response):
    return True
