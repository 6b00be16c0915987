"""The room package."""
