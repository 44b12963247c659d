"""Studies: benchmarks, peers, reports, comparisons, and the paper reproduced."""
