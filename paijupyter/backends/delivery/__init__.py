"""What brings packages to tasks elsewhere and outputs back, alike for every backend (P15, P18, P24).

Packages travel as archives, by folders, buckets and commits of git remotes; outputs come as archives.
"""
