"""What all jobs of a profile share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from paijupyter.backends.changes import Changes
from paijupyter.backends.kubernetes.builds import Builds
from paijupyter.backends.kubernetes.bundles import Bundles
from paijupyter.backends.kubernetes.capabilities import Asker
from paijupyter.backends.kubernetes.events import Events
from paijupyter.backends.kubernetes.hub import Hub
from paijupyter.backends.kubernetes.logs import Lines
from paijupyter.backends.kubernetes.settings import KubeSettings
from paijupyter.backends.kubernetes.submit import Submitter
from paijupyter.backends.kubernetes.transport import KubeTransport


@dataclass(frozen=True, slots=True)
class Shared:
    """The parts of a backend that its jobs work with."""

    transport: KubeTransport
    settings: KubeSettings
    hub: Hub
    asker: Asker
    submitter: Submitter
    changes: Changes
    lines: Lines
    bundles: Bundles
    builds: Builds
    events: Events
    data: Path
