"""The calls of OpenPAI's REST API v2 that its clients need, on any profile of ours.

``shapes`` turns our views into OpenPAI's, ``jobs``, ``logs`` and ``cluster`` answer, ``routes`` is the table.
"""
