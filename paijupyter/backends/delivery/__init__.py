"""What brings packages to tasks elsewhere, alike for every backend: archives, folders, buckets (P15, P18)."""
