"""The boot process of a task: unpack, install, environment, barrier, run, mask, report.

It runs inside the task, on any Python from 3.6 with nothing but the standard library, as a zip archive whose
top package is ``paiboot`` (:func:`paijupyter.backends.boot.boot_zipapp` builds it). Nothing of ours imports
it and it imports nothing of ours; a backend talks to it by files: ``spec.json`` in; ``started.json``,
``ready``, ``log``, ``log.index`` and ``exit.json`` out.

Start-up time counts: ``typing`` is imported for the type checker only, everything rare inside its function.
"""
