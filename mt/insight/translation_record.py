"""Record of one translation: a recorded search, and a recorded forward pass over its result."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from mt.checkpoint import LoadedModel
from mt.config import ModelConfig
from mt.decoding.options import SearchOptions
from mt.decoding.scorer import ModelScorer
from mt.errors import RequestError
from mt.insight.record import BLOCKS, AttentionRecord, PassRecord, record_pass
from mt.insight.search_record import SearchTree, record_search
from mt.pipeline.driver import AttentionCall, Routine
from mt.pipeline.results import ExplainOptions
from mt.pipeline.translator import Translator
from mt.scoring.attention import CrossAttention
from mt.text.alignment import Link
from mt.text.segment import TextPart
from mt.tokenizer import EOS

MAX_WEIGHTS = 2**20
"""Maximum number of attention weights in a page; they take about 10 bytes each."""

POSITIONS = 64  # positions in the picture of the position encoding
CANDIDATES = 5  # tokens shown for each decoding step


@dataclass(frozen=True)
class Query:
    """A query of an attention head. All numbers count from 1."""

    block: str = "encoder"  # a key of BLOCKS
    layer: int = 1
    head: int = 1
    position: int = 1

    @classmethod
    def parse(cls, text: str) -> "Query":
        """Return the query of a text such as cross.2.1.3. Raises: RequestError if it has another form."""
        block, *numbers = text.split(".")
        if block not in BLOCKS or len(numbers) != 3 or not all(part.isdecimal() for part in numbers):
            raise RequestError(
                f"the query is {text!r}; accepted: BLOCK.LAYER.HEAD.POSITION such as cross.2.1.3, with the block "
                f"{', '.join(BLOCKS)}"
            )
        return cls(block, *map(int, numbers))


@dataclass(frozen=True)
class Step:
    """One decoding step: the token that the best hypothesis has, and the most probable tokens."""

    chosen: str
    logit: float
    probability: float
    rank: int  # rank of the chosen token, counted from 1
    entropy: float  # entropy of the distribution over the vocabulary, in bits
    candidates: tuple[tuple[str, float, float], ...]  # piece, logit, probability; best first


@dataclass(frozen=True)
class TranslationRecord:
    """Everything that the page shows of one translation."""

    model: str
    config: ModelConfig
    sentence: str
    translation: str
    source: tuple[str, ...]  # pieces with tag and EOS
    target: tuple[str, ...]  # pieces, from BOS to the last token before EOS
    vocabulary: tuple[str, ...]  # target pieces by id
    record: PassRecord
    tree: SearchTree
    links: tuple[Link, ...]
    positions: Tensor  # [POSITIONS, D]
    query: Query

    def labels(self, record: AttentionRecord) -> tuple[Sequence[str], Sequence[str]]:
        """Return the labels of the queries and the labels of the keys of an attention record."""
        padded = (*self.source, *["<pad>"] * self.record.padding)
        return self.source if record.block == "encoder" else self.target, (
            self.target if record.block == "decoder" else padded
        )

    @property
    def attention(self) -> AttentionRecord:
        return self.record.of(self.query.block)[self.query.layer - 1]

    @property
    def steps(self) -> list[Step]:
        """The decoding steps of the best hypothesis, EOS included, from the logits of the forward pass."""
        chosen = (*self.record.target[1:], EOS)
        return [self._step(logits, token) for logits, token in zip(self.record.logits, chosen, strict=True)]

    def _step(self, logits: Tensor, token: int) -> Step:
        probabilities = logits.softmax(0)
        highest = logits.topk(min(CANDIDATES, len(logits))).indices.tolist()
        return Step(
            chosen=self.vocabulary[token],
            logit=float(logits[token]),
            probability=float(probabilities[token]),
            rank=int((logits > logits[token]).sum()) + 1,
            entropy=-float(probabilities.xlogy(probabilities).sum()) / math.log(2),
            candidates=tuple((self.vocabulary[id], float(logits[id]), float(probabilities[id])) for id in highest),
        )


def explain(
    loaded: LoadedModel,
    sentence: str,
    *,
    source: str | None = None,
    target: str | None = None,
    query: Query | None = None,
    options: SearchOptions | None = None,
) -> TranslationRecord:
    """Translate a sentence by one beam search in plain torch. Return a record of the search and of a forward pass.

    `options` are by default those of the model.

    Raises:
        LanguageError: The model does not translate the direction.
        RequestError: The sentence is empty or too long, the model fails on it, or it does not contain `query`.
    """
    translator, query = Translator(loaded), query or Query()
    planner = translator.planner(source=source, target=target, options=options, explain=ExplainOptions(alignment=True))
    request = translator.request(sentence, source=source, target=target, options=options)
    if request is None:
        raise RequestError("the sentence is empty; accepted: a sentence with at least one word")
    _check_size(loaded.description.model, len(request.source), len(request.source))
    tree = record_search(ModelScorer(loaded.model), request.source, request.options, request.prefix)
    if not tree.hypotheses:
        raise RequestError(f"the model cannot translate {sentence!r}: the score of every hypothesis is infinite or NaN")
    best = tree.hypotheses[0]
    _check_size(loaded.description.model, len(request.source), len(best.tokens) + 1)
    record = record_pass(loaded.model, request.source, best.tokens)
    alternative = planner.context.alternative(best)
    assert planner.explainer is not None
    routine = Routine(planner.explainer.explain([(TextPart(sentence.strip(), kept=False), alternative)]))
    while isinstance(routine.call, AttentionCall):
        routine.resume(CrossAttention(translator.attend([routine.call.pair])[0]))
    pieces = loaded.tokenizer.target
    explanation = TranslationRecord(
        model=loaded.description.name,
        config=loaded.description.model,
        sentence=sentence.strip(),
        translation=alternative.text,
        source=tuple(loaded.tokenizer.pieces(record.source)),
        target=tuple(pieces.pieces(record.target)),
        vocabulary=tuple(pieces.pieces(range(len(pieces)))),
        record=record,
        tree=tree,
        links=routine.value[0].links,
        positions=loaded.model.target_input.positions.weight[:POSITIONS].cpu(),
        query=query,
    )
    _check_query(explanation)
    return explanation


def _check_size(config: ModelConfig, source: int, target: int) -> None:
    maps = config.encoder_layers * source * source + config.decoder_layers * target * (source + target)
    if config.heads * maps > MAX_WEIGHTS:
        raise RequestError(
            f"the sentence has {source} tokens and its translation {target}, with {config.heads * maps:,} attention "
            f"weights; accepted: at most {MAX_WEIGHTS:,} weights"
        )


def _check_query(explanation: TranslationRecord) -> None:
    query, config = explanation.query, explanation.config
    layers = config.encoder_layers if query.block == "encoder" else config.decoder_layers
    positions = len(explanation.source) if query.block == "encoder" else len(explanation.target)
    limits = {"layer": layers, "head": config.heads, "position": positions}
    values = ((name, limit, int(getattr(query, name))) for name, limit in limits.items())
    wrong = [f"{name} {value}; accepted: 1 to {limit}" for name, limit, value in values if not 1 <= value <= limit]
    if wrong:
        raise RequestError(f"the query in the block {query.block} has {', '.join(wrong)}")
