"""Make the data: points of a noisy line, as text."""

import random

random.seed(7)
with open("points.txt", "w") as file:
    for _ in range(400):
        x = random.uniform(-1, 1)
        file.write(f"{x:.5f} {3 * x - 2 + random.gauss(0, 0.05):.5f}\n")
print("wrote points.txt")
