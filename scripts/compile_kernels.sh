#!/usr/bin/env bash
# Compiles the CUDA kernels to PTX, which is part of the package. Needs nvcc of CUDA 13, after each change of a .cu file.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../mt/kernels/cuda"

nvcc -ptx -O3 -std=c++17 -arch=compute_80 -o attention.ptx attention.cu
gzip --best --no-name --force attention.ptx
sha256sum attention.cu | cut -d ' ' -f 1 > attention.sha256
