"""What is used of the GPUs that a task sees, as the driver's library (NVML) tells it.

In a container the driver shows the GPUs that it was given. The library is asked in a thread of its own: to
begin with a driver takes seconds, and a GPU in trouble may keep who asks for ever, while the task's output
must go on.
"""

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional

    Used = Dict[str, Any]

_LIBRARY = "libnvidia-ml.so.1"
_UUID_LENGTH = 96  # NVML_DEVICE_UUID_V2_BUFFER_SIZE
_PATIENCE = 0.2  # seconds for which an answer is waited for; a later one is told the next time


class Gpus:
    """The GPUs of this task, looked at again and again."""

    def __init__(self) -> None:
        self._asking: "Optional[threading.Thread]" = None
        self._library: "Any" = None
        self._found: "List[Used]" = []

    def look(self) -> "List[Used]":
        """Return what is used of each: ``name``, ``busy`` (0 to 1) and ``memoryMB``, these two if known."""
        if self._asking is None or not self._asking.is_alive():
            self._asking = threading.Thread(target=self._ask, daemon=True)
            self._asking.start()
        self._asking.join(_PATIENCE)
        return self._found

    def _ask(self) -> None:
        try:
            if self._library is None:
                self._library = _open()
            self._found = [_used(self._library, device) for device in _devices(self._library)]
        except (ImportError, OSError, AttributeError, ValueError):
            self._found = []  # no driver, or one that cannot be used: the next time may be better


def _open() -> "Any":
    """Return the library, ready to be asked.

    Raises:
        OSError: there is none, or its driver answers with an error.
    """
    import ctypes

    library = ctypes.CDLL(_LIBRARY)
    answer = library.nvmlInitWithFlags(0)
    if answer:
        raise OSError("NVML answers %d" % answer)
    return library


def _devices(library: "Any") -> "List[Any]":
    """Return the handles of all GPUs that are for us; of one that is cut into slices (MIG), those."""
    import ctypes

    count = ctypes.c_uint()
    if library.nvmlDeviceGetCount_v2(ctypes.byref(count)):
        return []
    found: "List[Any]" = []
    for index in range(count.value):
        device = ctypes.c_void_p()
        if library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(device)):
            continue  # another container's
        found += _slices(library, device) if _is_cut(library, device) else [device]
    return found


def _is_cut(library: "Any", device: "Any") -> bool:
    import ctypes

    now, later = ctypes.c_uint(), ctypes.c_uint()
    answer = library.nvmlDeviceGetMigMode(device, ctypes.byref(now), ctypes.byref(later))
    return not answer and bool(now.value)


def _slices(library: "Any", device: "Any") -> "List[Any]":
    import ctypes

    most = ctypes.c_uint()
    if library.nvmlDeviceGetMaxMigDeviceCount(device, ctypes.byref(most)):
        return []
    found: "List[Any]" = []
    for number in range(most.value):
        part = ctypes.c_void_p()
        if not library.nvmlDeviceGetMigDeviceHandleByIndex(device, ctypes.c_uint(number), ctypes.byref(part)):
            found.append(part)  # else a gap in the numbers
    return found


def _used(library: "Any", device: "Any") -> "Used":
    """Return what is used of a GPU, or of a slice, which does not say how busy it is."""
    import ctypes

    class Rates(ctypes.Structure):
        _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]

    class Memory(ctypes.Structure):
        _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]

    uuid = ctypes.create_string_buffer(_UUID_LENGTH)
    if library.nvmlDeviceGetUUID(device, uuid, ctypes.c_uint(_UUID_LENGTH)):
        raise OSError("a GPU without a name")
    used: "Used" = {"name": uuid.value.decode("ascii", "replace")}
    rates, memory = Rates(), Memory()
    if not library.nvmlDeviceGetUtilizationRates(device, ctypes.byref(rates)):
        used["busy"] = rates.gpu / 100.0
    if not library.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)):
        used["memoryMB"] = round(memory.used / 1048576.0, 1)
    return used
