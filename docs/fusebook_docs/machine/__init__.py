"""What compilers make of the kernels that recipes compile."""
