"""Training contender: MarianMTModel of transformers, trained in the same steps as by the Trainer of transformers."""

import numpy as np
import torch
from transformers import MarianConfig, MarianMTModel

from .processes import cpu_seconds
from .train_task import TrainSettings, TrainTask, run_learner


class MarianTrainer:
    """Trainer with fused AdamW, label-smoothed cross-entropy of complete logits, and autocast for bfloat16."""

    def __init__(self, task: TrainTask, settings: TrainSettings) -> None:
        torch.set_num_threads(settings.threads)
        torch.manual_seed(1)
        self.task = task
        self.device = settings.device
        self.autocast = torch.autocast(settings.device, torch.bfloat16, enabled=settings.precision == "bfloat16")
        self.model = MarianMTModel(_configuration(task, settings.attention)).train()
        self.model.to(torch.device(settings.device))
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0, fused=True
        )
        self.batches = np.load(task.batches)
        self.update = 0

    def learn(self) -> tuple[float, int]:
        names = [name for name in self.batches.files if name.startswith(f"source_{self.update}_")]
        self.update += 1
        self.optimizer.zero_grad(set_to_none=True)
        total, tokens = 0.0, 0
        for name in names:
            source, target, labels = (
                torch.from_numpy(self.batches[name.replace("source", side)]).to(self.device)
                for side in ("source", "target", "labels")
            )
            with self.autocast:
                logits = self.model(
                    input_ids=source, attention_mask=source != 0, decoder_input_ids=target, use_cache=False
                ).logits
                loss = torch.nn.functional.cross_entropy(
                    logits.flatten(0, 1),
                    labels.flatten(),
                    ignore_index=0,
                    label_smoothing=self.task.smoothing,
                    reduction="sum",
                )
            torch.autograd.backward(loss)
            total += float(loss.detach())
            tokens += int((labels != 0).sum())
        for parameter in self.model.parameters():
            if parameter.grad is not None:
                parameter.grad /= tokens
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.task.clip)
        for group in self.optimizer.param_groups:
            group["lr"] = self.task.rate_of(self.update)
        self.optimizer.step()
        return total, tokens

    def cpu_seconds(self) -> float:
        return cpu_seconds()


def _configuration(task: TrainTask, attention: str) -> MarianConfig:
    return MarianConfig(
        vocab_size=task.vocabulary,
        decoder_vocab_size=task.vocabulary,
        d_model=task.d_model,
        encoder_layers=task.layers,
        decoder_layers=task.layers,
        encoder_ffn_dim=task.d_ff,
        decoder_ffn_dim=task.d_ff,
        encoder_attention_heads=task.heads,
        decoder_attention_heads=task.heads,
        dropout=task.dropout,
        attention_dropout=0.0,
        activation_dropout=0.0,
        activation_function="relu",
        scale_embedding=True,
        init_std=task.d_model**-0.5,  # as in our model; Marian's default 0.02 learns more slowly
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=3,
        decoder_start_token_id=2,
        attn_implementation=attention,  # type: ignore[call-arg]
        use_cache=False,
    )


def main() -> None:
    run_learner(MarianTrainer)
