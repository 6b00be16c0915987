"""Fit a line to the points, one gradient step after the other."""

import argparse
import json
import os

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, required=True)
steps = parser.parse_args().steps

with open("points.txt") as file:
    points = [tuple(map(float, line.split())) for line in file]
slope = offset = 0.0
for step in range(1, steps + 1):
    errors = [(slope * x + offset - y, x) for x, y in points]
    slope -= 0.5 * sum(error * x for error, x in errors) / len(points)
    offset -= 0.5 * sum(error for error, _ in errors) / len(points)
    if step % max(1, steps // 10) == 0:
        loss = sum(error * error for error, _ in errors) / len(points)
        print(f"step {step}/{steps}  loss {loss:.4f}", flush=True)
        with open(os.environ["PAI_METRICS_FILE"], "a") as file:
            file.write(json.dumps({"step": step, "steps": steps, "loss": round(loss, 5)}) + "\n")
print(f"y = {slope:.2f} x + {offset:.2f}")
