"""Places where jobs run, behind one seam (:mod:`paijupyter.backends.base`)."""
