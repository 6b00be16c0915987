"""The engine: one detached process per user and host that does all work on jobs.

``python -m paijupyter.engine`` starts it; :mod:`paijupyter.client.start` does so for whoever needs it first.
It serves the REST API of :mod:`paijupyter.engine.routes` on a Unix socket that only its user may open.
"""
