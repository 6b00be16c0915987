"""The version, in one place: the package, the engine and the docs read it here."""

__version__ = "0.1.0"
