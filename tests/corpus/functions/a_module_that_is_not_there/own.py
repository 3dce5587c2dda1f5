import no_such_package_here


def score(response):
    return no_such_package_here.score(response)
