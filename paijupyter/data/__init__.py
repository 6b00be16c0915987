"""Data of jobs on this host: kinds of sources, local files that travel, the cache, storages.

A kind is a class found by the entry point group ``paijupyter.data`` under its name; see
:class:`paijupyter.data.kinds.SourceKind`.
"""
