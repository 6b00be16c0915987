"""The job document that most tests need: one role, `worker`, that runs a command or some."""

from __future__ import annotations

import json


def document(
    *commands: str,
    name: str = "hello",
    instances: int = 1,
    cpu: float = 1,
    memory: int = 100,
    ports: str = "",
) -> str:
    """Return it as text; ``memory`` is in MB, ``ports`` are labels with counts: ``web: 2``."""
    more = f", ports: {{{ports}}}" if ports else ""
    return f"""\
protocolVersion: 2
name: {name}
type: job
prerequisites:
  - {{name: image, type: dockerimage, uri: python}}
taskRoles:
  worker:
    instances: {instances}
    dockerImage: image
    resourcePerInstance: {{cpu: {cpu}, memoryMB: {memory}, gpu: 0{more}}}
    commands: {json.dumps(commands, ensure_ascii=False)}
"""
