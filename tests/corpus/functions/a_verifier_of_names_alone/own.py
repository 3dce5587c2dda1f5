def check(answer, truth, *rest, strict=True):
    assert strict and not rest
    return answer == truth
