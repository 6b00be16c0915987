"""Commands in the pods of a job, and connections to their ports."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

from paijupyter.backends.kubernetes.channels import (
    STATUS,
    STDERR,
    STDIN,
    STDOUT,
    Channels,
    exit_of,
    port_header,
)
from paijupyter.backends.kubernetes.errors import KubeError
from paijupyter.backends.kubernetes.facts import Pod
from paijupyter.backends.kubernetes.transport import KubeTransport

_DATA, _ERROR = 0, 1
_NAMES = {STDOUT: "stdout", STDERR: "stderr"}


async def run(
    transport: KubeTransport, pod: Pod, command: Sequence[str], stdin: bytes
) -> AsyncIterator[tuple[str, bytes]]:
    """Run a command in a pod; see :meth:`paijupyter.backends.base.Entering.exec`."""
    try:
        channels = await transport.exec(pod.name, command, stdin=bool(stdin), container=pod.main)
    except KubeError as error:
        raise error.for_people("run the command") from error
    feeding = asyncio.create_task(_feed(channels, stdin)) if stdin else None
    try:
        async for channel, data in channels:
            if channel == STATUS:
                ended = exit_of(data)
                yield "exit", str(ended.code).encode()
                return
            if channel in _NAMES:
                yield _NAMES[channel], data
        raise KubeError(0, "Unreachable", "the connection ended before the command did")
    except KubeError as error:
        raise error.for_people("run the command") from error
    finally:
        if feeding is not None:
            feeding.cancel()
        await channels.close()


async def _feed(channels: Channels, stdin: bytes) -> None:
    with contextlib.suppress(KubeError):
        await channels.send(STDIN, stdin)
        await channels.end_input()


class PortConnection:
    """One connection to a port of a pod."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels
        self._frames = channels.__aiter__()
        self._began: set[int] = set()

    async def read(self) -> bytes:
        """Return what has come; b"" at the end, also when nobody listens on the port."""
        try:
            async for channel, data in self._frames:
                if channel not in self._began:
                    self._began.add(channel)
                    if port_header(data) is not None:
                        continue
                if channel == _DATA and data:
                    return data
                if channel == _ERROR and data:
                    raise ConnectionError(data.decode("utf-8", "replace"))
        except KubeError as error:
            raise ConnectionError(str(error)) from error
        return b""

    async def write(self, data: bytes) -> None:
        """Send bytes."""
        try:
            await self._channels.send(_DATA, data)
        except KubeError as error:
            raise ConnectionError(str(error)) from error

    async def close(self) -> None:
        """End it."""
        await self._channels.close()


async def connect(transport: KubeTransport, pod: str, port: int) -> PortConnection:
    """Open a connection to a port of a pod.

    Raises:
        PaiJupyterError: it cannot be reached.
    """
    try:
        return PortConnection(await transport.forward(pod, port))
    except KubeError as error:
        raise error.for_people("open the port") from error
