"""The room jobs."""
