"""The room engine."""
