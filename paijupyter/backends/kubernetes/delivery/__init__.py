"""How packages reach pods: a ladder of ways, the first that fits is taken (P15, P18)."""
