"""The backend of this machine."""

from paijupyter.backends.local.backend import LocalBackend as LocalBackend

__all__ = ["LocalBackend"]
