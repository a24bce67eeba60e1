import fusebook
import numpy as np
from fusebook.recipe import (Within, exact, interleaved, measured, print,
                             print_columns, print_row, ratio, run_recipe, step)

# %%
# From Python
# ===========
#
# The package ``fusebook`` has the optimizers for Python: with the names and
# arguments of ``torch.optim``, over torch tensors or, as on this page, over
# arrays of NumPy. A :term:`step` changes the arrays where they lie, and is one
# :term:`launch`. Functions of your own become one :term:`kernel`, too. ``pip
# install .`` in a clone of the repository brings the package; this page is a
# program in Python.


# %%
# We train a small network on a wave. NumPy has no gradients, so the network
# comes with its own: the chain rule, backwards through a ``tanh``.
def loss_and_grads(a, b, c, d, x):
    hidden = np.tanh(x @ a + b)
    error = hidden @ c + d - np.sin(2 * x)
    back = 2 / len(x) * error
    inner = back @ c.T * (1 - hidden**2)
    return np.mean(error**2), [x.T @ inner, inner.sum(0), hidden.T @ back,
                               back.sum(0)]


def from_python():
    step("Arrays")
    # Parameters are a list of arrays, whatever made them.
    rng = np.random.default_rng(0)
    x = np.linspace(-2, 2, 64)[:, None]
    start = [rng.normal(size=(1, 128)), np.zeros(128),
             rng.normal(size=(128, 1)) / 16, np.zeros(1)]
    print("parameters: ", len(start), ", elements: ",
          sum(each.size for each in start))

    step("Adam")
    # An array has no gradient, so ``step`` is given one for each parameter.
    # They are new arrays every time. A torch tensor has one: there,
    # ``adam.step()`` is the whole call, and schedulers of torch work on it.
    params = [each.copy() for each in start]
    adam = fusebook.Adam(params, lr=0.02)
    print_columns("step", "Adam loss")
    for n in range(301):
        loss, grads = loss_and_grads(*params, x)
        if n % 25 == 0:
            print_row(n, Within(loss, 1e-9, 9))
        adam.step(grads)

    step("What was launched")
    # .. recipe-plot:: Adam
    #    :alt: The loss falls steeply at first, then ever more slowly.
    #
    #    The table above, drawn.
    #
    # The first step compiled a kernel for this machine; each step is one launch
    # of it. The elements are in float64, as NumPy makes them, and the kernel
    # moves :value:`seven <numbers an element: #>` numbers for each: what it
    # loads are parameter, gradient and both averages, and it stores all but the
    # gradient.
    counters = adam.counters
    moved = counters.bytes_moved / counters.launches / sum(
        each.nbytes for each in params)
    print("launches in 301 steps: ", exact("launches", counters.launches))
    print("compilations:          ", counters.compilations)
    print("numbers an element:    ", round(moved))

    step("A formula of your own")
    # What works on lists is ``foreach_map_``, here with Lion, an optimizer that
    # the package does not have. The function is called once, with values that
    # record what it does to them; what it returns goes into both lists of the
    # first argument.
    def lion(param, mean, grad, rate):
        direction = fusebook.ops.sign(fusebook.ops.lerp(mean, grad, 0.1))
        return param - rate * direction, fusebook.ops.lerp(mean, grad, 0.01)

    params = [each.copy() for each in start]
    means = [np.zeros_like(each) for each in params]
    before = fusebook.process_counters().launches
    for n in range(301):
        loss, grads = loss_and_grads(*params, x)
        rate = 0.01 * (1 - n / 301)
        fusebook.foreach_map_(lion, (params, means), grads, rate)
    done = fusebook.process_counters().launches - before
    print("launches in 301 steps: ", done)
    print("learned:               ", bool(loss < 0.01))

    step("The time of a step")
    # Adam in NumPy is a loop over the arrays, and a call for every operation.
    # With :constant:`a thousand <rng.normal(size=64) for _ in range(#)>` small
    # arrays, calls are all that it does. Medians, measured in turns:
    many = [rng.normal(size=64) for _ in range(1000)]
    grads = [rng.normal(size=64) for _ in many]
    fused = fusebook.Adam([each.copy() for each in many])
    first, second = ([np.zeros(64) for _ in many] for _ in range(2))

    def by_hand():
        for p, g, m, v in zip(many, grads, first, second):
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            p -= 0.001 * m / (np.sqrt(v) + 1e-8)

    numpy_us, fusebook_us = interleaved([by_hand, lambda: fused.step(grads)])
    print("NumPy:    ", measured("numpy_us", numpy_us, "us"))
    print("Fusebook: ", measured("fusebook_us", fusebook_us, "us"))
    print("speedup:  ", ratio("speedup", "numpy_us", "fusebook_us"))


# %%
# Change it
# ---------
#
# .. exercise:: single_precision
#
#    Make the parameters arrays of float32. How many bytes per element does the
#    kernel move now?
#
# .. exercise:: momentum
#
#    Replace Adam by ``fusebook.SGD`` with a momentum. How many numbers per
#    element does the kernel move now?
#
# .. exercise:: moving_rate
#
#    Let Adam's rate fall to zero in a straight line:
#    ``adam.param_groups[0]["lr"]`` may be set before every step. Is anything
#    compiled again?

if __name__ == "__main__":
    run_recipe(from_python)
