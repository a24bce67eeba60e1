"""Adam with its states in 8 bits, and what they take."""

import fusebook
import numpy as np

weights = np.ones((256, 256), np.float32)
adam = fusebook.Adam([weights], lr=0.01)
adam.use_8bit_states()
for _ in range(200):
    adam.step([weights - 0.5])

memory = adam.memory()
print(f"{memory.states + memory.scales} bytes of states, where float32 takes "
      f"{2 * weights.nbytes}")
print(f"the fit is {'good' if abs(weights - 0.5).max() < 0.01 else 'bad'}")
