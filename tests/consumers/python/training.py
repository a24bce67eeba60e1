"""Fits a line with NumPy. Gradients are new arrays in every step."""

import fusebook
import numpy as np

x = np.linspace(-1, 1, 50)
y = 3 * x + 0.5

slope, offset = np.zeros(1), np.zeros(1)
adam = fusebook.Adam([slope, offset], lr=0.1)
for step in range(101):
    error = slope * x + offset - y
    if step % 20 == 0:
        print(f"step {step}: loss {np.mean(error**2):.4f}")
    adam.step([np.array([2 * np.mean(error * x)]), np.array([2 * np.mean(error)])])

print(f"{slope[0]:.2f} x + {offset[0]:.2f}")
print(f"{adam.counters.launches} launches, {adam.counters.recompiles} recompiles")
