"""The backend of an OpenPAI cluster (1.0 to 1.8), by its REST API; nothing of ours is installed there."""
