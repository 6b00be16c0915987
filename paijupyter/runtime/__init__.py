"""The room runtime."""
