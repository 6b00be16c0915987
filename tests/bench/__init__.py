"""Speed and memory against what a user would pick instead, in one run, as ratios (``make bench``)."""
