"""The room magics."""
