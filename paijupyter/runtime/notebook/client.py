"""The kernel of a run: this interpreter, on sockets of its own, with nobody who could answer ``input()``."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional

_PYTHON = "python"
_START_SECONDS = 120


def make_client(job: "Any", folder: str, timeout: "Optional[float]") -> "Any":
    """Return an nbclient that tells the run what its cells put out.

    Args:
        job: the run, with ``notebook`` and ``shown``.
        folder: private folder for the kernel's sockets.
        timeout: seconds that one cell may take, or None.

    Raises:
        LookupError: there is no kernel for the notebook's language; the text says so.
    """
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    class Client(NotebookClient):  # type: ignore[misc]
        """Shows outputs as they come and joins the pieces of a stream."""

        kc: "Any"
        _exit_code: "Optional[int]" = None

        async def begin(self) -> None:
            await self.async_start_new_kernel()
            await self.async_start_new_kernel_client()

        async def language(self) -> "Dict[str, Any]":
            message = await self.async_wait_for_reply(self.kc.kernel_info())
            return dict((message or {}).get("content", {}).get("language_info") or {"name": _PYTHON})

        async def end(self, at_once: bool) -> None:
            if self.km is not None and self.km.has_kernel:
                await self.km.shutdown_kernel(now=at_once)
            if self.kc is not None:
                self.kc.stop_channels()

        def exit_code(self) -> "Optional[int]":
            process = getattr(self.km.provisioner, "process", None)
            code: "Optional[int]" = process.returncode if process is not None else self._exit_code
            return code

        async def _async_check_alive(self) -> None:
            process = getattr(self.km.provisioner, "process", None)
            if process is not None and process.poll() is not None:
                self._exit_code = process.returncode
            await super()._async_check_alive()

        def output(self, outs: "Any", msg: "Any", display_id: "Any", cell_index: int) -> "Any":
            before = outs[-1] if outs else None
            found = super().output(outs, msg, display_id, cell_index)
            if found is None:
                return None
            job.shown(found)
            if before is not None and len(outs) > 1 and outs[-1] is found and outs[-2] is before:
                if found["output_type"] == before["output_type"] == "stream":
                    if found["name"] == before["name"]:
                        before["text"] += found["text"]
                        outs.pop()
                        return before
            return found

    manager = AsyncKernelManager(
        connection_file=os.path.join(folder, "kernel.json"), transport="ipc", ip=os.path.join(folder, "s")
    )
    manager._kernel_spec = _spec(job.notebook)
    return Client(
        job.notebook,
        km=manager,
        timeout_func=lambda _: timeout,
        startup_timeout=_START_SECONDS,
        store_widget_state=False,
        allow_errors=False,
        record_timing=True,
        resources={"metadata": {"path": os.getcwd()}},
    )


def _spec(notebook: "Any") -> "Any":
    """Return how the kernel is started: for Python it is this interpreter, whatever name the notebook has."""
    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager, NoSuchKernel

    asked = (notebook.get("metadata") or {}).get("kernelspec") or {}
    spoken = ((notebook.get("metadata") or {}).get("language_info") or {}).get("name") or asked.get(
        "language"
    )
    if str(spoken or _PYTHON).lower() == _PYTHON:
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=argv, language=_PYTHON, display_name="Python")
    name = str(asked.get("name") or spoken)
    try:
        return KernelSpecManager().get_kernel_spec(name)
    except NoSuchKernel:
        there = ", ".join(sorted(KernelSpecManager().find_kernel_specs())) or "none"
        text = "Notebook asks for the kernel `%s` (%s), which this task does not have; there is: %s."
        raise LookupError(text % (name, spoken, there)) from None
