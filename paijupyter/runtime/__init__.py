"""The boot process of a task: unpack, install, environment, barrier, run, mask, report.

It runs inside the task, on any Python from 3.6 with nothing but the standard library, as a zip archive whose
top package is ``paiboot`` (:func:`paijupyter.backends.boot.boot_zipapp` builds it). Nothing of ours imports
it and it imports nothing of ours; a backend talks to it by files: ``spec.json`` in; ``started.json``,
``environment.json`` (what is installed), ``ready``, ``log``, ``log.index`` and ``exit.json`` out.

``spec.json``, schema 1:

- ``job``: ``id name user attempt``, optional ``virtualCluster defaultFsUri``
- ``role``, ``index``: this task; ``folder``: its records; ``private``: a 0700 folder that boot makes and
  removes; ``output``: where results are kept; ``python``: the interpreter that ``python`` shall mean, or null
- ``roles``: in document order, each ``name instances minFailed minSucceeded``, optional ``resources``
  (``gpu cpu memoryMB shmMB``), ``launcher service env ports`` (label to count)
- ``hosts``, ``ports``: by task (``worker-0``): an address; label to numbers
- ``command``: text for bash, ``$secrets`` references left in it; ``env``; ``parameters``, typed
- ``secrets``: path of a 0600 JSON file of names and values, or null; ``key``: text that only the tasks of
  this attempt know
- ``package``: paths of ``manifest``, ``pack`` and ``blobs``, or null
- ``requirements``: ``file`` (null: ``requirements.txt`` if the package has it), ``policy``
  (``never if-missing always``), ``environments``: folder, optional ``index``: URL
- ``data``: ``cache`` (folder), ``resolved`` (folder, the same for all tasks of the job), ``sources``: each
  ``name kind uri shown base place`` (folder it shall appear in), optional ``sha256 ref secret``, ``package``
  (as above, with ``sha256``), ``key`` (in the cache already), ``link`` (a path to link to), ``inside``
- ``storages``: each ``name path``
- ``outputs``: globs below the package folder; ``barrier``: ``kind: files``, ``tasks`` (task to folder),
  ``timeout``; ``graceSeconds``, ``timeLimit``, ``logLimitBytes``
- ``runsNotebook``: whether the command runs a notebook, and the interpreter must be one that can
- ``checkpoints``: a folder that all attempts and tasks of the job share, or null; ``memoryLimitMB``: what
  the command may use, ``memoryLimit``: how that is enforced (``auto``: a control group where one may be made,
  else ``sampling``; ``none``); ``logFloorBytes``: room on the disk below which the log pauses, 0 for none

Times in the records are seconds since the epoch. Start-up time counts:
``typing`` is imported for the type checker only, everything rare inside its function.
"""
