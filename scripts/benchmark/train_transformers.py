"""Training contender: MarianMTModel of transformers, trained in the same steps as by the Trainer of transformers.

    python -m scripts.benchmark.train_transformers FOLDER OUT DTYPE ATTENTION DEVICE THREADS

FOLDER has the recipe and the batches of `scripts.benchmark.train`. The training writes the record of
the second half of the updates to OUT/metrics.jsonl: fused AdamW, label-smoothed cross-entropy of complete logits, and
autocast for bfloat16.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from transformers import MarianConfig, MarianMTModel

from mt.config import Recipe
from mt.recipe import load_recipe

from .train import RATE, UPDATES


def configuration(recipe: Recipe, vocabulary: int, attention: str) -> MarianConfig:
    model = recipe.model
    return MarianConfig(
        vocab_size=vocabulary,
        decoder_vocab_size=vocabulary,
        d_model=model.d_model,
        encoder_layers=model.encoder_layers,
        decoder_layers=model.decoder_layers,
        encoder_ffn_dim=model.d_ff,
        decoder_ffn_dim=model.d_ff,
        encoder_attention_heads=model.heads,
        decoder_attention_heads=model.heads,
        dropout=model.dropout,
        attention_dropout=0.0,
        activation_dropout=0.0,
        activation_function="relu",
        scale_embedding=True,
        init_std=model.d_model**-0.5,  # as in our model; Marian's default 0.02 learns more slowly
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=3,
        decoder_start_token_id=2,
        attn_implementation=attention,  # type: ignore[call-arg]
        use_cache=False,
    )


def main(folder: Path, out: Path, dtype: str, attention: str, device: str, threads: int) -> None:
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    recipe = load_recipe(folder / "recipe.toml")
    batches = np.load(folder / "batches.npz")
    model = MarianMTModel(configuration(recipe, int(batches["vocabulary"]), attention)).train().to(torch.device(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0, fused=True)
    began, total, tokens = 0.0, 0.0, 0
    for update in range(UPDATES):
        if update == UPDATES // 2:
            began, total, tokens = time.perf_counter(), 0.0, 0
        optimizer.zero_grad(set_to_none=True)
        labelled = 0
        for name in [name for name in batches.files if name.startswith(f"source_{update}_")]:
            sides = (name.replace("source", side) for side in ("source", "target", "labels"))
            source, target, labels = (torch.from_numpy(batches[side]).to(device) for side in sides)
            with torch.autocast(device, torch.bfloat16, enabled=dtype == "bfloat16"):
                logits = model(
                    input_ids=source, attention_mask=source != 0, decoder_input_ids=target, use_cache=False
                ).logits
                loss = torch.nn.functional.cross_entropy(
                    logits.flatten(0, 1),
                    labels.flatten(),
                    ignore_index=0,
                    label_smoothing=recipe.training.label_smoothing,
                    reduction="sum",
                )
            torch.autograd.backward(loss)
            total += float(loss.detach())
            labelled += int((labels != 0).sum())
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.grad /= labelled
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.training.clip_norm)
        for group in optimizer.param_groups:
            group["lr"] = RATE * (update + 1) / UPDATES
        optimizer.step()
        tokens += labelled
    if device == "cuda":
        torch.cuda.synchronize()
    record = {"update": UPDATES, "train_loss": total / tokens, "train_speed": tokens / (time.perf_counter() - began)}
    (out / "metrics.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")


if __name__ == "__main__":
    _, folder, out, dtype, attention, device, threads = sys.argv
    main(Path(folder), Path(out), dtype, attention, device, int(threads))
