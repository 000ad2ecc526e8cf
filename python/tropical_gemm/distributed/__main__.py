"""The command: ``torchrun --nproc-per-node N -m tropical_gemm.distributed shortest-paths graph.gr -o
out``."""

from ._command import main

main()
