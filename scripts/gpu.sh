#!/usr/bin/env bash
# Checks and measures the system on a GPU: correctness, then speed, then the product.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

usage() {
    cat << 'END_USAGE'
usage: bash scripts/gpu.sh [DIR] [--only PART...] [--device NAME] [--minutes N] [--pack DIR]

Checks and measures this checkout on a GPU, the most important parts first. Each part takes less than 10 minutes and has
a limit of its own. It writes a log and its results to DIR (default: gpu-results). summary.json and summary.md there list
the parts: passed, failed or skipped, with seconds and a reason; results.tgz contains everything but the models. A part
that ends with status 77 was skipped; the last line of its log is the reason. Needs no network.

  --only PART...  run these parts only:
      tests       what the GPU computes against the CPU, and how it behaves in bad conditions (pytest -m gpu)
      speed       base: correctness with bounds, training, decoding, times of a step, kernels, natural lengths
      service     the contract tests of the service with MT_DEVICE=NAME
      text        the same text by CUDA graphs and by torch, a glossary, a second GPU
      training    a training that is killed and resumed, and torchrun
      limits      many long sentences in little memory, attention with and without cuDNN
      big         training and decoding of the big model
      peers       decoding beside other toolkits
      starter     the bundled model: teacher, distillation, student (never part of a run without --only)
  --minutes N     time of the part `starter` (default: 14)
  --pack DIR      its data, from `python -m scripts.starter pack` (default: starter-pack)

MT_PYTHON is the Python to use (default: .venv/bin/python, or else python3).
END_USAGE
}

usual=(tests speed service text training limits big peers)
output=gpu-results device=cuda minutes=14 pack=starter-pack only=()
value() { # OPTION VALUE
    [ -n "${2:-}" ] || { echo "$1 needs a value" >&2 && exit 2; }
    printf '%s' "$2"
}
while [ $# -gt 0 ]; do
    case "$1" in
        --only)
            while [ $# -gt 1 ] && [[ " ${usual[*]} starter " = *" $2 "* ]]; do
                only+=("$2")
                shift
            done
            [ ${#only[@]} -gt 0 ] || { echo "--only: accepted are ${usual[*]} starter" >&2 && exit 2; }
            ;;
        --device) device=$(value "$@") && shift || exit ;;
        --minutes) minutes=$(value "$@") && shift || exit ;;
        --pack) pack=$(value "$@") && shift || exit ;;
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
[ ${#only[@]} -gt 0 ] || only=("${usual[@]}")
python=${MT_PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}

missing=$("$python" - << 'END_PYTHON'
from importlib.util import find_spec

needed = "torch numpy sentencepiece google.protobuf safetensors pydantic pydantic_core rich langcodes language_data"
needed += " marisa_trie filelock sacrebleu sacremoses sentencex py3langid lxml docx fluent.syntax markdown_it yaml tomli_w"
needed += " huggingface_hub pytest hypothesis"
needed += " fastapi uvicorn httptools uvloop starlette pydantic_settings prometheus_client structlog"
needed += " cachetools python_multipart pypdfium2 httpx deep_translator"  # service


def is_missing(name):
    try:
        return find_spec(name) is None
    except ModuleNotFoundError:  # the package of a submodule
        return True


print(*filter(is_missing, needed.split()))
END_PYTHON
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
part() { # SECONDS NAME COMMAND...
    local limit=$1 name=$2 begun=$SECONDS result=passed
    shift 2
    echo "== $name: $*"
    timeout --kill-after 10 "$limit" "$@" > "$output/$name.log" 2>&1
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
measure() { # SECONDS NAME SIZE MEASUREMENT...: several measurements in one process
    part "$1" "$2" "$python" -m scripts.benchmark.gpu --part "${@:4}" --size "$3" --device "$device" --output "$output"
}
corpus=''
phrasebook() { # the corpus of the trainings and of the peers, once
    [ -n "$corpus" ] || part 60 corpus "$python" -m mt fetch phrasebook --out "$output/data/phrasebook"
    corpus=written
}
training() { # NAME [OVERRIDE ...] [OPTION ...]: sets `words`, the command of a training
    words=(env MT_DATA="$output/data" "${launch[@]}" mt train scripts/recipes/phrasebook.toml
        training.max_updates=40 training.validate_every=40 training.save_every=20 --run "$output/$1"
        --prepared "$output/prepared" --device "$device" "${@:2}")
}
train() { # like `training`
    training "$@"
    part 300 "$1" "${words[@]}"
}
kill_training() { # NAME: begins a training and kills it by SIGKILL after its first checkpoint
    local begun=$SECONDS process
    training "$1" training.max_updates=100000
    echo "== $1: ${words[*]}"
    timeout 300 "${words[@]}" > "$output/$1.log" 2>&1 & # leads a process group
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

run_tests() {
    part 400 tests "$python" -m pytest -m gpu -q -p no:cacheprovider --junit-xml "$output/tests.xml" tests/engine
}
run_speed() { measure 400 speed base correctness training decoding replay profile lengths; }
run_service() {
    part 400 service env MT_DEVICE="$device" "$python" -m pytest -q -p no:cacheprovider tests/service/test_contract.py
}
run_text() {
    local translate=("$python" -m mt translate --model mt/bundled/starter "$output/lines.en" --source en --target de)
    cut -f 1 tests/frozen/lines.tsv > "$output/lines.en"
    printf 'woman\tDame\n' > "$output/glossary.tsv"
    part 120 translate-graphs "${translate[@]}" --device "$device" --backend auto
    part 120 translate-torch "${translate[@]}" --device "$device" --backend torch
    part 120 translate-glossary "${translate[@]}" --device "$device" --glossary "$output/glossary.tsv"
    if [ "$device" = cuda ] && [ "$gpus" -gt 1 ]; then
        part 120 translate-second-gpu "${translate[@]}" --device cuda:1
    else
        skip translate-second-gpu "there is one GPU, or --device is not cuda"
    fi
}
run_training() { # by torchrun with one and with all GPUs, too; `--` ends the options of torchrun
    phrasebook
    local torchrun=("$python" -m torch.distributed.run --standalone -m --nproc-per-node)
    launch=("$python" -m)
    kill_training killed
    training killed --resume
    part 300 resumed "${words[@]}"
    launch=("${torchrun[@]}" 1 --)
    train torchrun-1
    if [ "$gpus" -gt 1 ]; then
        launch=("${torchrun[@]}" "$gpus" --)
        train "torchrun-$gpus"
    else
        skip torchrun-2 "there is one GPU"
    fi
}
run_limits() { measure 300 limits base memory attention; }
run_big() { measure 400 big big training decoding; }
run_peers() {
    phrasebook
    cut -f 1 "$output/data/phrasebook/test.tsv" > "$output/sentences.en"
    part 500 peers "$python" -m scripts.benchmark.decode --random base --source-file "$output/sentences.en" --device "$device" \
        --beam-size 4 --output "$output/peers"
}
run_starter() { # continues after a call that was cut off
    part 590 starter "$python" -m scripts.starter train "$pack" "$output/starter" --minutes "$minutes" --device "$device"
    "$python" -m scripts.starter collect "$output/starter" "$output/starter-files"
}

for name in "${only[@]}"; do
    "run_$name"
done
cat "$output"/*.md > "$output/all-parts.markdown" 2> /dev/null
(cd "$output" && find . -type f ! -name '*.safetensors' ! -name '*.npy' ! -name '*.tar.*' ! -name results.tgz -print0 \
    | tar czf results.tgz --null --files-from -)
if [ ${#failed[@]} -gt 0 ]; then
    echo "FAILED: ${failed[*]}; the logs are in $output" >&2
    exit 1
fi
echo "Every part finished; the results are in $output."
