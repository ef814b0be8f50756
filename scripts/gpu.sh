#!/usr/bin/env bash
# Measures the system on a GPU for the first time: correctness, then speed, then memory.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

usage() {
    cat << 'END'
usage: bash scripts/gpu.sh [DIR] [--device NAME]

Checks and measures this checkout on a GPU, the most important parts first. Each part runs in a process of its own for
less than 10 minutes and writes JSON, Markdown and a log to DIR (default: gpu-results). Needs no network.
MT_PYTHON is the Python to use (default: .venv/bin/python, or else python3).
END
}

output=gpu-results device=cuda
while [ $# -gt 0 ]; do
    case "$1" in
        --device)
            device=${2:?--device needs a name}
            shift
            ;;
        -h | --help)
            usage
            exit 0
            ;;
        -*)
            usage >&2
            exit 2
            ;;
        *) output=$1 ;;
    esac
    shift
done
python=${MT_PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}

missing=$("$python" - << 'END'
from importlib.util import find_spec

needed = "torch numpy sentencepiece safetensors pydantic rich matplotlib langcodes filelock pytest hypothesis"
print(*(name for name in needed.split() if find_spec(name) is None))
END
) || exit
if [ -n "$missing" ]; then
    echo "missing packages: $missing; bash scripts/setup.sh dev installs them" >&2
    exit 1
fi

gpus=$("$python" -c 'import torch; print(max(1, torch.cuda.device_count()))') || exit
mkdir -p "$output"
failed=()
part() {
    local name=$1
    shift
    echo "== $name: $*"
    if ! timeout --kill-after 10 590 "$@" > "$output/$name.log" 2>&1; then
        failed+=("$name")
        tail -n 5 "$output/$name.log"
    fi
}
measure() {
    part "$1-$2" "$python" -m mt benchmark gpu --part "$1" --size "$2" --device "$device" --output "$output"
}
train() { # a name, then overrides and options
    local name=$1
    shift
    part "$name" env MT_DATA="$output/data" "${launch[@]}" -m mt train scripts/recipes/phrasebook.toml \
        training.max_updates=40 training.validate_every=40 training.save_every=20 --run "$output/$name" \
        --prepared "$output/prepared" --device "$device" "$@"
}

# Correct results, then speed of training and decoding.
measure correctness base
part tests "$python" -m pytest -m gpu -q -p no:cacheprovider --junit-xml "$output/tests.xml" tests/engine
for size in base big; do
    measure training "$size"
    measure decoding "$size"
done
measure replay base
measure profile base
measure lengths base

# Translation of text: the library's path, a glossary, the second GPU, the service.
translate=("$python" -m mt translate mt/bundled/starter "$output/lines.en" --source en --target de)
cut -f 1 tests/frozen/lines.tsv > "$output/lines.en"
printf 'woman\tDame\n' > "$output/glossary.tsv"
part translate-graphs "${translate[@]}" --device "$device" --backend auto
part translate-torch "${translate[@]}" --device "$device" --backend torch
part translate-glossary "${translate[@]}" --device "$device" --glossary "$output/glossary.tsv"
if [ "$device" = cuda ] && [ "$gpus" -gt 1 ]; then
    part translate-second-gpu "${translate[@]}" --device cuda:1
fi
part service env MT_DEVICE="$device" "$python" -m mt benchmark serve mt/bundled/starter --source "$output/lines.en" \
    --http --seconds 10 --output "$output/service"

# Training that is killed and resumed, by torchrun with one and with all GPUs, and sharded.
launch=("$python")
part corpus "$python" -m mt fetch phrasebook --out "$output/data/phrasebook"
train killed training.max_updates=100000 training.max_minutes=1 &
sleep "${MT_KILL_AFTER:-45}"
kill -s KILL $! 2> /dev/null
wait
train killed --resume
for processes in 1 "$gpus"; do
    launch=("$python" -m torch.distributed.run --standalone --nproc-per-node "$processes")
    train "torchrun-$processes"
done
train sharded training.shard=true training.optimizer=adam

# Limits and peers.
measure memory base
measure attention base
part peers "$python" -m mt benchmark decode --random base --device "$device" --beam-size 4 --output "$output/peers"
cat "$output"/*.md > "$output/all-parts.markdown" 2> /dev/null
if [ ${#failed[@]} -gt 0 ]; then
    echo "FAILED: ${failed[*]}; the logs are in $output" >&2
    exit 1
fi
echo "Every part finished; the results are in $output."
