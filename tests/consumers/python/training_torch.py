"""A model of torch and its scheduler; one line differs from torch.optim."""

import fusebook
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(1, 16), torch.nn.Tanh(),
                            torch.nn.Linear(16, 1))
x = torch.linspace(-2, 2, 64).unsqueeze(1)
y = torch.sin(2 * x)

adam = fusebook.Adam(model.parameters(), lr=0.02)
decay = torch.optim.lr_scheduler.StepLR(adam, step_size=100, gamma=0.5)
for _ in range(300):
    adam.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    adam.step()
    decay.step()

print(f"the fit is {'good' if loss < 0.01 else 'bad'}")
print(f"{adam.counters.launches} launches, {adam.counters.recompiles} recompiles")
