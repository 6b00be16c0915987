"""The room client."""
