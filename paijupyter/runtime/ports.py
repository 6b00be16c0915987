"""Are the ports of a task still free?"""

import errno
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List

_LOOKS = 4
_PAUSE = 0.05  # seconds; somebody who only tries a port holds it for less


def taken(ports: "Dict[str, List[int]]") -> str:
    """Return which of the ports (label to numbers) others hold, in words; "" if none."""
    wanted = [(label, number) for label in ports for number in ports[label]]
    for look in range(_LOOKS):
        wanted = [(label, number) for label, number in wanted if _is_held(number)]
        if not wanted:
            return ""
        if look < _LOOKS - 1:
            time.sleep(_PAUSE)
    return " and ".join("%d (`%s`)" % (number, label) for label, number in wanted)


def in_use(lines: "List[str]") -> bool:
    """Say whether a program complained that an address is taken."""
    return any("ddress already in use" in line or "EADDRINUSE" in line for line in lines)


def of_task(spec: "Dict[str, Any]") -> "Dict[str, List[int]]":
    """Return the ports of the spec's own task."""
    found: "Dict[str, List[int]]" = (spec.get("ports") or {}).get(
        "%s-%d" % (spec["role"], spec["index"])
    ) or {}
    return found


def _is_held(number: int) -> bool:
    from _socket import AF_INET, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, socket  # a third of socket's start

    probe = socket(AF_INET, SOCK_STREAM)
    try:
        # As a server does it: what an ended connection left behind is in nobody's way.
        probe.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        probe.bind(("", number))
    except OSError as error:
        return error.errno == errno.EADDRINUSE
    finally:
        probe.close()
    return False
