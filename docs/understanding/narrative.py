# ---
# jupyter:
#   jupytext: {formats: "py:percent"}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # From attention to translations
#
# This file goes from attention upwards through "Attention Is All You Need" (Vaswani et al. 2017), with the code of
# `mt.model`, which also serves. The titles have the numbers of the paper's sections. Run it from top to bottom in a
# checkout, after `bash scripts/setup.sh` and `source .venv/bin/activate`:
#
#     python docs/understanding/narrative.py
#
# It trains a model of English and German, without a corpus of yours. The 800 updates take about 4 minutes of one core,
# end with a loss near 1.7 and give a BLEU of about 60. Fewer updates make a short run with poor translations, because
# the learning rate rises during the first 400: `python docs/understanding/narrative.py 100`. As a notebook, in which
# you change `UPDATES`:
#
#     pip install jupytext notebook
#     jupytext --to ipynb docs/understanding/narrative.py
#     jupyter notebook docs/understanding/narrative.ipynb
#
# Shapes: `B` sentences, `S` source length, `T` target length, `H` heads, `D` d_model, `V` vocabulary.

# %%
import math
import random
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

try:
    import torch

    from mt import evaluation
except ModuleNotFoundError as error:
    raise SystemExit(f"{error}; first: bash scripts/setup.sh && source .venv/bin/activate") from None

from torch import Tensor

from mt.config import ModelConfig
from mt.data.demo import write_phrasebook
from mt.model.attention import MultiHeadAttention, attention, attention_weights, causal_mask
from mt.model.embedding import position_table
from mt.model.layers import DecoderLayer, EncoderLayer, FeedForward, Sublayer
from mt.model.transformer import Transformer
from mt.tokenizer import Tokenizer, train_tokenizer
from mt.training.loss import smoothed_cross_entropy
from mt.training.optimizer import orthogonal
from mt.training.schedule import noam

UPDATES = int(sys.argv[1]) if sys.argv[1:] and sys.argv[1].isdigit() else 800  # a notebook has other arguments
torch.set_num_threads(1)  # on busy cores, a second thread makes the training slower
torch.manual_seed(1)
torch.set_printoptions(precision=2, sci_mode=False)

# %% [markdown]
# ## 3.2.1 Scaled dot-product attention
#
# Each query `q` reads the values `v` with weights that depend on the keys `k`:
# Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V, equation 1. One head, two queries, three keys, d_k = 2:

# %%
q = torch.tensor([[1.0, 0.0], [0.0, 1.0]])[None, None]  # [B=1, H=1, T=2, d_k=2]
k = torch.tensor([[3.0, 0.0], [0.0, 3.0], [0.0, 0.0]])[None, None]  # [1, 1, S=3, 2]
v = torch.tensor([[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]])[None, None]

by_hand = torch.exp(q @ k.mT / math.sqrt(2))
by_hand = by_hand / by_hand.sum(dim=-1, keepdim=True)
print("weights\n", by_hand[0, 0])
assert torch.allclose(by_hand, attention_weights(q, k))
assert torch.allclose(by_hand @ v, attention(q, k, v))

# %% [markdown]
# A decoder must not read what it has not written yet. A mask sets the scores of later positions to minus infinity, so
# that their weights are 0 (section 3.2.3). Row t of the causal mask allows the keys 0 to t:

# %%
print(causal_mask(4, torch.device("cpu")).int())
x = torch.randn(1, 1, 4, 2)
masked = attention_weights(x, x, causal_mask(4, torch.device("cpu")))
print(masked[0, 0])
assert torch.equal(masked[0, 0].triu(diagonal=1), torch.zeros(4, 4))

# %% [markdown]
# ## 3.2.2 Several heads
#
# One attention gives one mean. H heads of size d_k = D / H look for H different things, and their results are joined.
# Each position may read all others, so the parameters do not depend on the length:

# %%
heads = MultiHeadAttention(d_model=8, heads=2)
for length in (3, 7):
    states = torch.randn(1, length, 8)
    assert heads(states, states).shape == (1, length, 8)
print("parameters of attention:", sum(p.numel() for p in heads.parameters()), "= 4 (D x D + D)")

# %% [markdown]
# ## 3.1 Layers
#
# Around every attention and every feed-forward network there is a residual connection and a LayerNorm:
# LayerNorm(x + Sublayer(x)). The paper's order is `norm = "post"`. Any function can be a sublayer; ReLU keeps the check
# short. An encoder layer has two sublayers; a decoder layer has three, the one in the middle reads the encoder's
# output, `memory`.

# %%
config = ModelConfig(
    encoder_layers=2, decoder_layers=2, d_model=128, d_ff=512, heads=4, norm="post", dropout=0.1, max_length=64
)
sublayer = Sublayer(config).eval()
states = torch.randn(1, 5, config.d_model)
if config.norm == "post":
    assert torch.allclose(sublayer(states, torch.relu), sublayer.norm(states + torch.relu(states)))
memory = EncoderLayer(config)(states, None)
print("decoder layer:", tuple(DecoderLayer(config)(torch.randn(1, 3, config.d_model), memory, None).shape))

# %% [markdown]
# ## 3.3 Feed-forward networks
#
# The second sublayer computes FFN(x) = max(0, x W_1 + b_1) W_2 + b_2 at each position by itself, equation 2. W_1 makes
# d_ff numbers of the D numbers of a position, W_2 makes D numbers of them again.

# %%
network = FeedForward(config).eval()
assert torch.allclose(network(states), network.outer(torch.relu(network.inner(states))))

# %% [markdown]
# ## 3.5 Positions
#
# Attention without a mask does not see order: without positions, a sentence is a bag of words to the encoder. Sines and
# cosines of different wavelengths are added to the embeddings. The product of two position vectors depends on their
# distance only:

# %%
table = position_table(config, 50)  # [50, D]
products = [float(table[n] @ table[n + 5]) for n in (0, 10, 40)]
print("PE(n) . PE(n + 5) for n = 0, 10, 40:", [round(product, 3) for product in products])

# %% [markdown]
# ## 5.1 Text becomes numbers
#
# The phrasebook of this package has more than 20,000 pairs of sentences. Byte pair encoding (Sennrich et al. 2016)
# splits words into pieces, so that a vocabulary of 2,000 pieces covers every word. Source and target share it.


# %%
def read_pairs(folder: Path, split: str) -> list[tuple[str, str]]:
    lines = (folder / f"{split}.tsv").read_text(encoding="utf-8").splitlines()
    return [(english, german) for english, german, *_ in (line.split("\t") for line in lines)]


with TemporaryDirectory() as name:
    write_phrasebook(Path(name))
    training, held_out = read_pairs(Path(name), "train"), read_pairs(Path(name), "test")[::20]
tokenizer = Tokenizer(train_tokenizer((side for pair in training for side in pair), vocabulary_size=2000))
print(f"{len(training):,} pairs, {len(held_out)} held out, {len(tokenizer):,} pieces")
print(training[0][0], "->", tokenizer.pieces(tokenizer.encode(training[0][0])))

# %% [markdown]
# ## 5.2 Batches
#
# Sentences of similar length share a batch, so that little of it is padding. The decoder reads `BOS w1 ... wn` and
# predicts `w1 ... wn EOS`: at every position the next token, all at once (BOS and EOS are the tokens that begin and end
# a sentence). No position that counts reads padding (the source mask; target padding is later than every token), and
# padding does not count in the loss (label -100, which cross-entropy ignores).

# %%
PAD, BOS, EOS = 0, 2, 3


def padded(rows: list[list[int]], value: int = PAD) -> Tensor:
    width = max(map(len, rows))
    return torch.tensor([[*row, *[value] * (width - len(row))] for row in rows])


def batch_of(pairs: list[tuple[list[int], list[int]]]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return source [B, S], source mask [B, S], decoder input [B, T] and labels [B, T]."""
    source = padded([[*one, EOS] for one, _ in pairs])
    return (
        source,
        source != PAD,
        padded([[BOS, *other] for _, other in pairs]),
        padded([[*other, EOS] for _, other in pairs], -100),
    )


encoded = [(tokenizer.encode(one), tokenizer.encode(other)) for one, other in training]
encoded.sort(key=lambda pair: (len(pair[1]), len(pair[0])))
batches = [encoded[n : n + 96] for n in range(0, len(encoded), 96)]
source, mask, inputs, labels = batch_of(batches[0][:2])
print("decoder input\n", inputs, "\nlabels\n", labels)

# %% [markdown]
# ## 3 The model
#
# Encoder, decoder, and one matrix for source embeddings, target embeddings and output; the embeddings are multiplied
# by sqrt(D) before the positions are added (section 3.4). A model that gives every token the same probability has a
# loss of ln V. Before training the loss is somewhat higher, because the probabilities differ at random.

# %%
model = Transformer(config, len(tokenizer))
print(f"{sum(p.numel() for p in model.parameters()):,} parameters; ln V = {math.log(len(tokenizer)):.2f}")

# %% [markdown]
# ## 5.3, 5.4 Training
#
# Adam with beta2 = 0.98, the learning rate of equation 3 (a linear rise, then a fall with 1 / sqrt(update)), label
# smoothing of 0.1, dropout of 0.1. This is the whole loop. `mt/training/trainer.py` does the same and adds what long
# trainings need: checkpoints, validation, several processes, time limits.

# %%
optimizer = torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9)
order, losses, began = random.Random(1), [], time.monotonic()
model.train()
for update in range(1, UPDATES + 1):
    source, mask, inputs, labels = batch_of(order.choice(batches))
    logits = model(source, mask, inputs)  # [B, T, V]
    loss = smoothed_cross_entropy(logits.flatten(0, 1), labels.flatten(), smoothing=0.1) / (labels != -100).sum()
    optimizer.zero_grad()
    loss.backward()
    for group in optimizer.param_groups:
        group["lr"] = noam(update, config.d_model, warmup=400, factor=1.0)
    optimizer.step()
    losses.append(float(loss.detach()))
    if update == 1 or update % 50 == 0:
        recent = losses[-100:]
        seconds = time.monotonic() - began
        print(f"update {update:4} | loss {sum(recent) / len(recent):.3f} | {seconds:.0f} s", flush=True)

# %% [markdown]
# ## 6.1 Translations
#
# The decoder writes one token at a time and reads what it has written. Greedy search takes the most probable token;
# `mt/decoding/beam.py` keeps several hypotheses. A cache would avoid computing old positions again
# (`mt/model/cache.py`); this loop is the definition.


# %%
@torch.inference_mode()
def translate(sentences: list[str], longest: int = 40) -> list[str]:
    source = padded([[*tokenizer.encode(sentence), EOS] for sentence in sentences])
    mask = source != PAD
    memory = model.encode(source, mask)
    written = torch.full((len(sentences), 1), BOS)
    for _ in range(longest):
        states = model.decode(written, memory, mask)  # [B, T, D]
        best = model.embedding.project(states[:, -1]).argmax(dim=-1)
        written = torch.cat((written, best[:, None]), dim=1)
        if (written == EOS).any(dim=1).all():
            break
    rows = [row[1:].tolist() for row in written]
    return [tokenizer.decode(row[: row.index(EOS)] if EOS in row else row) for row in rows]


model.eval()
translations = translate([english for english, _ in held_out])
for (english, german), translation in list(zip(held_out, translations, strict=True))[:8]:
    print(f"{english}  ->  {translation}" + ("" if translation == german else f"  (reference: {german})"))
score = evaluation.bleu(translations, [german for _, german in held_out], target_language="de")
print(f"BLEU {score.value:.1f} on {len(held_out)} held-out sentences ({score.signature})")

# %% [markdown]
# Where does the decoder look? The cross-attention of the last layer, mean of the heads, says which source piece it read
# for each target piece. The service places tags by such weights, of the layer before the last (`alignment.md`). The
# sentence is of the phrasebook: a model knows the words of its training text, and guesses the others.

# %%
english = held_out[4][0]
pieces = [*tokenizer.pieces(tokenizer.encode(english)), "</s>"]
german = translate([english])[0]
print(f"{english}  ->  {german}")
target = torch.tensor([[BOS, *tokenizer.encode(german)]])
source = torch.tensor([[*tokenizer.encode(english), EOS]])
with torch.inference_mode():
    weights = model.cross_attention(source, source != PAD, target)[-1, 0].mean(dim=0)  # [T, S]
for piece, row in zip(tokenizer.pieces(tokenizer.encode(german)), weights, strict=False):
    print(f"{piece:>14} reads {pieces[int(row.argmax())]}")

# %% [markdown]
# ## Muon
#
# The recipes of the phrasebook, Multi30k and the starter model train with Muon (Jordan et al. 2024) instead of
# Adam. Adam scales each number of a gradient by itself. Muon treats the matrix of a layer as a matrix: it takes the
# momentum G = U S V^T and steps along U V^T, so that nearly all directions in which the gradient points get about
# the same step, not only the few large ones. Matrix products approximate U V^T, five times three of them, without a
# decomposition. Only the smallest singular values stay far below 1:

# %%
gradient = torch.randn(64, 4) @ torch.randn(4, 32) + 0.01 * torch.randn(64, 32)  # four large directions of 32
u, _, vh = torch.linalg.svd(gradient, full_matrices=False)
step = orthogonal(gradient[None], torch.float32)[0]
print("singular values before:", torch.linalg.svdvals(gradient)[[0, 3, 4, 31]])
print("singular values after: ", torch.linalg.svdvals(step)[[0, 3, 4, 31]])
print("cosine to U V^T:", round(float((step * (u @ vh)).sum() / step.norm() / (u @ vh).norm()), 2))

# %% [markdown]
# ## Try
#
# Change `heads=1`, `d_model=64` or `norm="pre"` in section 3.1, `smoothing=0` or `warmup=1` in the training, and run
# the file again. Compare the losses of updates 400 and 800 and the BLEU: the first 50 updates show no difference. The
# warm-up takes 400 updates, so shorter runs end inside it; 300 updates (about 90 s) already tell `norm="pre"` from
# `norm="post"`. `scale_embedding=False` and `tie_output=False` in section 3.1 are two more differences.
# `heads` must divide `d_model`.
#
# Next: [the pages](README.md) with pictures of every step and a short training with Muon, and `mt-service explain` for
# a sentence of yours.
