"""Stands in for TensorBoard where only the life of its process matters; the real one: test_real_board.py."""
