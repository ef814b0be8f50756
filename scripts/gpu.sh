#!/usr/bin/env bash
# Measures the system on a GPU for the first time: correctness, then speed, then memory.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

usage() {
    cat << 'END'
usage: bash scripts/gpu.sh [DIR] [--device NAME]

Checks and measures this checkout on a GPU, the most important parts first. Each part runs in a process of its own for
less than 10 minutes and writes JSON, Markdown and a log to DIR (default: gpu-results). summary.json and summary.md there
list the parts: passed, failed or skipped, with seconds and a reason. A part that ends with status 77 was skipped; the
last line of its log is the reason. Needs no network.
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
needed += " httpx fastapi uvicorn"  # the service, and its client
print(*(name for name in needed.split() if find_spec(name) is None))
END
) || exit
if [ -n "$missing" ]; then
    echo "missing packages: $missing; bash scripts/setup.sh dev installs them" >&2
    exit 1
fi

gpus=$("$python" -c 'import torch; print(max(1, torch.cuda.device_count()))') || exit
mkdir -p "$output"
failed=() rows=()
printf '| part | result | seconds | reason |\n|---|---|---|---|\n' > "$output/summary.md"
summarize() { # NAME RESULT SECONDS REASON
    local reason=${4//[\\\"]/}
    rows+=("{\"part\": \"$1\", \"result\": \"$2\", \"seconds\": $3, \"reason\": \"$reason\"}")
    (IFS=, && printf '[%s]\n' "${rows[*]}") > "$output/summary.json"
    printf '| %s | %s | %s | %s |\n' "$1" "$2" "$3" "${reason//|/}" >> "$output/summary.md"
}
finish() { # NAME RESULT SECONDS: a part that is over; the last line of its log is the reason if it did not pass
    local reason=''
    case $2 in
        failed)
            failed+=("$1")
            tail -n 5 "$output/$1.log"
            ;;
        skipped) tail -n 1 "$output/$1.log" ;;
    esac
    [ "$2" = passed ] || reason=$(tail -n 1 "$output/$1.log" | tr -d '[:cntrl:]')
    summarize "$1" "$2" "$3" "$reason"
}
part() {
    local name=$1 begun=$SECONDS result=passed
    shift
    echo "== $name: $*"
    timeout --kill-after 10 590 "$@" > "$output/$name.log" 2>&1
    case $? in
        0) ;;
        77) result=skipped ;;
        *) result=failed ;;
    esac
    finish "$name" "$result" $((SECONDS - begun))
}
skip() { # NAME REASON
    echo "== $1: skipped: $2"
    summarize "$1" skipped 0 "$2"
}
measure() {
    part "$1-$2" "$python" -m scripts.benchmark.gpu --part "$1" --size "$2" --device "$device" --output "$output"
}
training() { # NAME [OVERRIDE ...] [OPTION ...]: sets `words`, the command of a training
    words=(env MT_DATA="$output/data" "${launch[@]}" mt train scripts/recipes/phrasebook.toml
        training.max_updates=40 training.validate_every=40 training.save_every=20 --run "$output/$1"
        --prepared "$output/prepared" --device "$device" "${@:2}")
}
train() { # like `training`
    training "$@"
    part "$1" "${words[@]}"
}
kill_training() { # NAME: begins a training and kills it by SIGKILL after its first checkpoint
    local begun=$SECONDS process
    training "$1" training.max_updates=100000
    echo "== $1: ${words[*]}"
    timeout 590 "${words[@]}" > "$output/$1.log" 2>&1 & # leads a process group
    process=$!
    until compgen -G "$output/$1/checkpoints/0*" > /dev/null || ! kill -0 "$process" 2> /dev/null; do
        sleep 0.2
    done
    kill -s KILL -- "-$process" 2> /dev/null
    wait "$process" 2> /dev/null
    case $? in
        137) finish "$1" passed $((SECONDS - begun)) ;;
        *) finish "$1" failed $((SECONDS - begun)) ;;
    esac
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

# Translation of text: the library's path, a glossary, the second GPU.
translate=("$python" -m mt translate mt/bundled/starter "$output/lines.en" --source en --target de)
cut -f 1 tests/frozen/lines.tsv > "$output/lines.en"
printf 'woman\tDame\n' > "$output/glossary.tsv"
part translate-graphs "${translate[@]}" --device "$device" --backend auto
part translate-torch "${translate[@]}" --device "$device" --backend torch
part translate-glossary "${translate[@]}" --device "$device" --glossary "$output/glossary.tsv"
if [ "$device" = cuda ] && [ "$gpus" -gt 1 ]; then
    part translate-second-gpu "${translate[@]}" --device cuda:1
else
    skip translate-second-gpu "there is one GPU, or --device is not cuda"
fi
part corpus "$python" -m mt fetch phrasebook --out "$output/data/phrasebook"

# Training that is killed and resumed, by torchrun with one and with all GPUs. `--` ends the options of
# torchrun, which would take --run for an abbreviation of one of them.
launch=("$python" -m)
torchrun=("$python" -m torch.distributed.run --standalone -m --nproc-per-node)
kill_training killed
training killed --resume
part resumed "${words[@]}"
launch=("${torchrun[@]}" 1 --)
train torchrun-1
if [ "$gpus" -gt 1 ]; then
    launch=("${torchrun[@]}" "$gpus" --)
    train "torchrun-$gpus"
else
    skip torchrun-2 "there is one GPU"
fi

# Limits and peers.
measure memory base
measure attention base
cut -f 1 "$output/data/phrasebook/test.tsv" > "$output/sentences.en"
part peers "$python" -m scripts.benchmark.decode --random base --source "$output/sentences.en" --device "$device" \
    --beam-size 4 --output "$output/peers"
cat "$output"/*.md > "$output/all-parts.markdown" 2> /dev/null
if [ ${#failed[@]} -gt 0 ]; then
    echo "FAILED: ${failed[*]}; the logs are in $output" >&2
    exit 1
fi
echo "Every part finished; the results are in $output."
