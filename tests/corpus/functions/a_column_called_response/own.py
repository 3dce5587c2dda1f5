def score(response, solution_str):
    assert response == solution_str, (response, solution_str)
    return len(response)
