"""The room local."""
