"""The job documents of OpenPAI's marketplace, where the corpus of public documents is."""

from __future__ import annotations

from pathlib import Path

_CORPUS = Path(__file__).resolve().parents[2].parent / "shared" / "corpus" / "openpai"
DOCUMENTS = sorted(
    [
        *(_CORPUS / "pai" / "marketplace-v2").glob("*.yaml"),
        *(_CORPUS / "openpaimarketplace" / "examples" / "item_protocols").glob("*.yaml"),
    ]
)
NOT_HERE = "the corpus of public job documents is not beside this repository"
