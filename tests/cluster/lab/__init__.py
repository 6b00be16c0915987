"""A real Kubernetes of one node, built and started on this machine, for tests.

``python -m tests.cluster.lab --help`` says what it can do; :mod:`tests.cluster.lab.places` where things lie.
"""
