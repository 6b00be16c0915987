"""Edits by JSON Patch that change only the bytes of what they change."""

from __future__ import annotations
