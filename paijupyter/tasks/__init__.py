"""For a script inside a task: which part of the data is mine, and a queue of blocks that one task serves.

Inside a task ``import pai_tasks``: the boot process puts these very files on PYTHONPATH under that name, also
in an image that has no paijupyter. Where paijupyter is installed, ``import paijupyter.tasks`` is the same.
Standard library only, Python 3.6 and newer; imports nothing of ours.

The queue hands every block to one worker at a time. A worker that dies, or is silent for longer than the
lease, gives its block back, so a block may be *worked on* more than once; that it is done is *recorded* once,
in a file, before the worker is told. Server and workers prove to each other that they know the job's key;
what they say then is not encrypted.
"""

from .client import take_tasks
from .server import serve_tasks
from .shards import rank_and_world, shard
from .wire import TaskQueueError

__all__ = ["TaskQueueError", "rank_and_world", "serve_tasks", "shard", "take_tasks"]
