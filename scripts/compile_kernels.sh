#!/usr/bin/env bash
# Compiles the CUDA kernels to PTX, which is part of the package. Needs nvcc of CUDA 13, after each change of a .cu file.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../mt/kernels/cuda"

for source in *.cu; do
    name=${source%.cu}
    nvcc -ptx -O3 -std=c++17 -arch=compute_80 -o "$name.ptx" "$source"
    gzip --best --no-name --force "$name.ptx"
    sha256sum "$source" | cut -d ' ' -f 1 > "$name.sha256"
done
