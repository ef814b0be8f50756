"""Our models in ONNX, for devices that have nothing but an ONNX runtime."""

import json
from pathlib import Path
from typing import Any

import torch

from mt.checkpoint import LoadedModel, load_model
from mt.errors import ModelError
from mt.interop.card import exported_card, targets
from mt.interop.onnx_graph import AXES, DECODER, ENCODER, OPSET, decoder, encoder
from mt.interop.output import check_output
from mt.tokenizer import BOS, EOS, PAD, SOURCE_FILE, TARGET_FILE, UNK, VOCABULARY_FILE
from mt.writing import written_aside

try:
    from onnx import save_model
except ModuleNotFoundError:  # an optional dependency: `export_onnx` says so
    save_model = None  # type: ignore[assignment]

LARGEST = 2**31  # bytes that a protobuf message, and so a file, may have


def export_onnx(model: Path, out: Path) -> None:
    """Write the model directory `model` as `encoder.onnx` and `decoder.onnx` into the folder `out`, which is replaced.

    Beside them lie the tokenizer, a `config.json` with ids and how to decode, and a README.md that shows how to use
    all. Raises ModelError if onnx is not installed, the model cannot be loaded or is too large, or `out` is something
    else.
    """
    if save_model is None:
        raise ModelError("onnx is not installed; accepted: pip install 'mt-service[interop]'")
    check_output(out, model)
    loaded = load_model(model, torch.device("cpu"))
    size = 4 * sum(weight.numel() for weight in loaded.model.parameters())
    if size >= LARGEST:
        raise ModelError(f"{model}: {size / 2**30:.1f} GiB of weights; accepted: less than 2, all that ONNX files hold")
    with written_aside(out) as aside:
        save_model(encoder(loaded.model), str(aside / "encoder.onnx"))
        save_model(decoder(loaded.model), str(aside / "decoder.onnx"))
        for name, content in loaded.tokenizer.files.items():
            (aside / name).write_bytes(content)
        (aside / "config.json").write_text(json.dumps(_config(loaded), indent=1) + "\n", encoding="utf-8")
        (aside / "README.md").write_text(_card(loaded, model, out.name), encoding="utf-8")


def _config(loaded: LoadedModel) -> dict[str, Any]:
    """What a program must know that the graphs do not say."""
    description = loaded.description
    openings = {target: loaded.tokenizer.opening(target, description.directions) for target in targets(description)}
    return {
        "name": description.name,
        "directions": description.directions,
        "openings": openings,
        "pad": PAD,
        "begin": BOS,
        "end": EOS,
        "never_written": [PAD, UNK, BOS],
        "max_length": description.model.max_length,
        "decoding": description.decoding.model_dump(mode="json"),
    }


def _card(loaded: LoadedModel, model: Path, name: str) -> str:
    """Greedy search over the two files, and what goes in and out of them."""
    description = loaded.description
    shape = description.model
    target = targets(description)[0]
    opening = loaded.tokenizer.opening(target, description.directions)
    tag = f"{opening[0]}, " if opening else ""
    hint = f"; {opening[0]} asks for {target!r}" if opening else ""
    tokenizers, encode, decode = _text(loaded, name)
    body = f"""```python
{tokenizers}
encoder = onnxruntime.InferenceSession("{name}/encoder.onnx")
decoder = onnxruntime.InferenceSession("{name}/decoder.onnx")
source = np.array([[{tag}*{encode}, {EOS}]])  # {EOS} ends a text{hint}
mask = np.ones(source.shape, bool)
cross_keys, cross_values = encoder.run(None, {{"source": source, "source_mask": mask}})
read = {{"cross_keys": cross_keys, "cross_values": cross_values, "source_mask": mask}}
keys = values = np.zeros(({shape.decoder_layers}, 1, 1, {shape.heads}, 0, {shape.d_model // shape.heads}), np.float32)
tokens, found = np.array([[{BOS}]]), []  # {BOS} begins a translation
for _ in range(min(2 * source.size + 10, {shape.max_length})):
    logits, keys, values = decoder.run(None, {{"tokens": tokens, "keys": keys, "values": values, **read}})
    logits[..., :{EOS}] = -np.inf  # what is never written
    tokens = logits.argmax(-1)
    if tokens.item() == {EOS}:
        break
    found.append(tokens.item())
print({decode})
```

{_signatures()}
Opset {OPSET}, float32. Masks are True on tokens and False on padding ({PAD}). The beams of a sentence share what the
encoder gave; when one goes on from another, so must its keys and values. Logits become probabilities by a softmax over
all pieces. `config.json` names the ids, and says how the model is decoded by default.
"""
    return exported_card(description, "ONNX", body, model)


IMPORTS = """import numpy as np
import onnxruntime
import sentencepiece
"""


def _text(loaded: LoadedModel, name: str) -> tuple[str, str, str]:
    """Python that imports packages and makes tokenizers, that encodes a text, and that decodes what was found."""
    files = loaded.tokenizer.files
    tokenizer = f'tokenizer = sentencepiece.SentencePieceProcessor(model_file="{name}/{SOURCE_FILE}")'
    if VOCABULARY_FILE not in files:
        return f"{IMPORTS}\n{tokenizer}", 'tokenizer.encode("A text.")', "tokenizer.decode(found)"
    lines = [
        "import json\nfrom pathlib import Path\n",
        IMPORTS,
        tokenizer,
        f'vocabulary = json.loads(Path("{name}/{VOCABULARY_FILE}").read_text("utf-8"))',
        'ids = {piece: id for id, piece in enumerate(vocabulary["pieces"])}',
    ]
    if TARGET_FILE in files:
        lines.append(tokenizer.replace("tokenizer", "target", 1).replace(SOURCE_FILE, TARGET_FILE))
    target = "target" if TARGET_FILE in files else "tokenizer"
    key = "target_pieces" if json.loads(files[VOCABULARY_FILE]).get("target_pieces") else "pieces"
    encode = f'(ids.get(piece, {UNK}) for piece in tokenizer.encode("A text.", out_type=str))'
    pieces = f'[vocabulary["{key}"][id] for id in found]'
    return "\n".join(lines), encode, f'{target}.decode_pieces({pieces}).replace("\u2581", " ").strip()'


def _signatures() -> str:
    """The inputs and outputs of both files."""
    lines = ["| file | value | type and shape |", "|---|---|---|"]
    for file, (inputs, outputs) in (("encoder.onnx", ENCODER), ("decoder.onnx", DECODER)):
        for kind, values in (("in", inputs), ("out", outputs)):
            lines += [f"| `{file}` | {kind}: `{value}` | {shape} |" for value, shape in values.items()]
    axes = (f"{axis} `{called}`" for axis, called in AXES.items() if axis.isalpha())
    return "\n".join(lines) + f"\n\nL decoder layers, H heads, V pieces; and of any size: {', '.join(axes)}.\n"
