"""Export to ONNX, for devices that have only an ONNX runtime, with an example program for greedy search."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mt.checkpoint import LoadedModel, load_model
from mt.errors import ModelError
from mt.files import atomic_folder
from mt.interop.onnx_graph import AXES, DECODER, ENCODER, OPSET, decoder, encoder
from mt.interop.output import check_output, exported_card, require_source_tags, target_languages
from mt.tokenizer import BOS, EOS, PAD, SOURCE_FILE, TARGET_FILE, UNK, VOCABULARY_FILE

LARGEST = 2**31  # bytes: the size limit of a protobuf message; an ONNX file is one message


def export_onnx(model: Path, out: Path) -> None:
    """Convert the model directory `model` to encoder.onnx and decoder.onnx in `out`. An existing model is replaced.

    The folder also gets the tokenizer, a `config.json` with ids and decoding options, and a README.md with a complete
    program that decodes greedily.

    Raises:
        ModelError: onnx is not installed, the model cannot be loaded or is too large, or `out` exists and is not a
            model.
    """
    if not all(map(find_spec, ("onnx", "onnxscript"))):
        raise ModelError("onnx or onnxscript is not installed. Run pip install 'mt-service[interop]'")
    check_output(out, model)
    loaded = load_model(model)
    require_source_tags(loaded, model, "the ONNX program")
    size = 4 * sum(weight.numel() for weight in loaded.model.parameters())
    if size >= LARGEST:
        raise ModelError(
            f"{model}: {size / 2**30:.1f} GiB of weights; accepted: less than 2 GiB, the limit of an ONNX file"
        )
    with atomic_folder(out) as temporary:
        encoder(loaded.model).save(temporary / "encoder.onnx")
        decoder(loaded.model).save(temporary / "decoder.onnx")
        for name, content in loaded.tokenizer.files.items():
            (temporary / name).write_bytes(content)
        (temporary / "config.json").write_text(json.dumps(_config(loaded), indent=1) + "\n", encoding="utf-8")
        (temporary / "README.md").write_text(_card(loaded, model), encoding="utf-8")


def _config(loaded: LoadedModel) -> dict[str, Any]:
    """Return the content of config.json: the ids and options that a program needs besides the graphs."""
    description = loaded.description
    prefixes = {
        target: loaded.tokenizer.source_prefix("", target, description.directions)
        for target in target_languages(description)
    }
    return {
        "name": description.name,
        "directions": description.directions.to_config(),
        "source_prefixes": prefixes,
        "pad": PAD,
        "begin": BOS,
        "end": EOS,
        "never_written": [PAD, UNK, BOS],
        "max_length": description.model.max_length,
        "decoding": description.decoding.model_dump(mode="json"),
    }


def _card(loaded: LoadedModel, model: Path) -> str:
    """Return the text of README.md: a program for greedy search, and the inputs and outputs of both graphs."""
    description = loaded.description
    shape = description.model
    target = target_languages(description)[0]
    prefix = loaded.tokenizer.source_prefix("", target, description.directions)
    tag = f"{prefix[0]}, " if prefix else ""
    hint = f"; {prefix[0]} asks for {target!r}" if prefix else ""
    tokenizers, encode, decode = _text(loaded)
    body = f"""Run this program in this folder. It decodes greedily: it takes the likeliest piece at each step. The \
scores in the card below are those of beam search, which usually translates better and can be built on the same two \
files.

```python
{tokenizers}
encoder = onnxruntime.InferenceSession("encoder.onnx")
decoder = onnxruntime.InferenceSession("decoder.onnx")
source = np.array([[{tag}*{encode}, {EOS}]])  # {EOS} ends a text{hint}
mask = np.ones(source.shape, bool)
cross_keys, cross_values = encoder.run(None, {{"source": source, "source_mask": mask}})
read = {{"cross_keys": cross_keys, "cross_values": cross_values, "source_mask": mask}}
keys = values = np.zeros(({shape.decoder_layers}, 1, 1, {shape.heads}, 0, {shape.d_model // shape.heads}), np.float32)
tokens, ids_out = np.array([[{BOS}]]), []  # {BOS} begins a translation
for _ in range(min(2 * source.size + 10, {shape.max_length})):
    logits, keys, values = decoder.run(None, {{"tokens": tokens, "keys": keys, "values": values, **read}})
    logits[..., :{EOS}] = -np.inf  # ids that no translation contains
    tokens = logits.argmax(-1)
    if tokens.item() == {EOS}:
        break
    ids_out.append(tokens.item())
print({decode})
```

{_signatures()}
Opset {OPSET}, float32. Masks are True on tokens and False on padding ({PAD}). The beams of a sentence share the
outputs of the encoder. When beam i continues beam j, copy the keys and values of beam j to beam i. A softmax over all
pieces turns logits into probabilities. `config.json` holds the ids and the default decoding options.
"""
    return exported_card(description, "ONNX", body, model)


IMPORTS = """import numpy as np
import onnxruntime
import sentencepiece
"""


def _text(loaded: LoadedModel) -> tuple[str, str, str]:
    """Return three parts of the example program: imports and tokenizers, encoding of a text, and decoding of ids."""
    files = loaded.tokenizer.files
    tokenizer = f'tokenizer = sentencepiece.SentencePieceProcessor(model_file="{SOURCE_FILE}")'
    if VOCABULARY_FILE not in files:
        return f"{IMPORTS}\n{tokenizer}", 'tokenizer.encode("A text.")', "tokenizer.decode(ids_out)"
    lines = [
        "import json\nfrom pathlib import Path\n",
        IMPORTS,
        tokenizer,
        f'vocabulary = json.loads(Path("{VOCABULARY_FILE}").read_text("utf-8"))',
        'ids = {piece: id for id, piece in enumerate(vocabulary["pieces"])}',
    ]
    if TARGET_FILE in files:
        lines.append(tokenizer.replace("tokenizer", "target", 1).replace(SOURCE_FILE, TARGET_FILE))
    target = "target" if TARGET_FILE in files else "tokenizer"
    key = "target_pieces" if json.loads(files[VOCABULARY_FILE]).get("target_pieces") else "pieces"
    encode = f'(ids.get(piece, {UNK}) for piece in tokenizer.encode("A text.", out_type=str))'
    pieces = f'[vocabulary["{key}"][id] for id in ids_out]'
    return "\n".join(lines), encode, f'{target}.decode_pieces({pieces}).replace("\u2581", " ").strip()'


def _signatures() -> str:
    lines = ["| file | value | type and shape |", "|---|---|---|"]
    for file, (inputs, outputs) in (("encoder.onnx", ENCODER), ("decoder.onnx", DECODER)):
        for kind, values in (("in", inputs), ("out", outputs)):
            lines += [f"| `{file}` | {kind}: `{value}` | {shape} |" for value, shape in values.items()]
    axes = (f"{axis} `{name}`" for axis, name in AXES.items() if axis.isalpha())
    return "\n".join(lines) + f"\n\nL decoder layers, H heads, V pieces. Axes of any size: {', '.join(axes)}.\n"
