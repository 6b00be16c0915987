"""The room protocol."""
