"""Handwritten digits, trained by a parameter server and its workers: the code of the quickstart."""
