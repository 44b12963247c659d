"""Studies: what runs are made for. Each folder or file imports only from those above it in this list.

titles, step_values   counts in words; the numbers of a recording, a row for every step: what the others share
bench                 scenes on several counts of workers, measured side by side
peers                 other engines on the same scene beside lapjoint, by speed and error
compare               two recorded runs of a scene: how far they are apart
report                recordings and benchmarks as one page with figures
reproduce             the paper's evaluation: what is run, kept, and put into its table and figures
"""
