def check(response, ground_truth):
    import no_such_package_here

    return no_such_package_here.equal(response, ground_truth)
