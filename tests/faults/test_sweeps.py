"""kill -9 of the engine while it submits a group: afterwards every experiment is there once, and ran once."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paijupyter.client import JobsClient
from paijupyter.client.groups import is_settled

COUNT = 50
TEMPLATE = """\
protocolVersion: 2
name: faults
type: job
prerequisites: [{protocolVersion: 2, name: image, type: dockerimage, uri: python}]
taskRoles:
  main:
    instances: 1
    dockerImage: image
    resourcePerInstance: {cpu: 0, memoryMB: 50, gpu: 0}
    commands: ["echo {0} >> {marks}"]
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("made", [1, 20])
def test_the_engine_is_killed_while_it_submits_a_group(
    made: int, isolated_home: Path, kill: Callable[[int], None], until: Callable[..., Any]
) -> None:
    """Once so many jobs are made, it is killed; and once more while the next one goes on."""
    marks = isolated_home / "marks"
    listing = {"experiments": {str(n): {} for n in range(1, COUNT + 1)}, "common": {"marks": str(marks)}}
    client = JobsClient.connect()
    request = {
        "template": TEMPLATE,
        "experiments": json.dumps(listing),
        "context": {"python": sys.executable},
    }
    request |= {"requestId": "once", "atOnce": 10}
    group = client.groups.submit(request)["id"]
    jobs = isolated_home / "data" / "jobs"
    for more in (made, made + 15):
        client.version()  # whoever asks next starts another engine
        until(lambda more=more: sum(1 for _ in jobs.iterdir()) >= more, 60, "jobs to be made")
        kill(client.version()["engine"]["pid"])
    assert client.groups.submit(request)["id"] == group  # asked again, it is the same round
    end = time.monotonic() + 240
    while not is_settled(view := client.groups.get(group)):
        assert time.monotonic() < end, [job for job in client.list(limit=1000)["jobs"] if not job["endedAt"]]
        time.sleep(0.1)
    assert view["counts"] == {"succeeded": COUNT} and view["round"] == 1
    keys = Counter(job["group"]["key"] for job in client.list(limit=1000)["jobs"])
    assert keys == Counter({str(n): 1 for n in range(1, COUNT + 1)})
    assert Counter(marks.read_text().split()) == keys
