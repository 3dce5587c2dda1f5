def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    assert data_source == 'sums'
    return 100.0 * (solution_str == ground_truth) + extra_info['index']
