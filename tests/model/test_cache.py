"""The cache against the model without one: after any sequence of events, each row's logits are those of its tokens."""

from random import Random

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from mt.model.cache import BLOCK, DecoderCache
from mt.model.transformer import Transformer
from tests.model.conftest import small_config

V = 30


class Search:
    """A cache, and beside it, in plain lists, what it stands for."""

    def __init__(self, model: Transformer, beams: int, sources: list[list[int]]) -> None:
        self.model = model
        self.beams = beams
        self.sources = sources
        self.rows: list[list[int]] = [[] for _ in range(len(sources) * beams)]
        self.cache = self._start(sources)

    def _start(self, sources: list[list[int]]) -> DecoderCache:
        width = max(map(len, sources))
        source = torch.tensor([[*ids, *[0] * (width - len(ids))] for ids in sources])
        mask = torch.arange(width) < torch.tensor([len(ids) for ids in sources])[:, None]
        return self.model.start(self.model.encode(source, mask), mask, self.beams)

    def assert_step(self, tokens: list[int]) -> Tensor:
        self.rows = [[*row, token] for row, token in zip(self.rows, tokens, strict=True)]
        logits = self.model.decode_step(torch.tensor(tokens), self.cache)
        for number, row in enumerate(self.rows):
            source = torch.tensor([self.sources[number // self.beams]])
            alone = self.model(source, torch.ones_like(source, dtype=torch.bool), torch.tensor([row]))
            assert_close(logits[number], alone[0, -1], atol=1e-5, rtol=1e-5)
        return logits

    def reorder(self, rows: list[int]) -> None:
        self.cache.reorder(torch.tensor(rows))
        self.rows = [self.rows[row] for row in rows]

    def select(self, sentences: list[int]) -> None:
        self.cache.select(torch.tensor(sentences, dtype=torch.int64))
        self.rows = [self.rows[sentence * self.beams + beam] for sentence in sentences for beam in range(self.beams)]
        self.sources = [self.sources[sentence] for sentence in sentences]

    def extend(self, other: "Search") -> None:
        self.cache.extend(other.cache)
        self.rows += other.rows
        self.sources += other.sources


LEARNED = {"positions": "learned", "embedding_norm": True}


@pytest.fixture(scope="module", params=[{"norm": "post"}, {"norm": "pre"}, LEARNED], ids=str)
def model(request: pytest.FixtureRequest) -> Transformer:
    torch.manual_seed(0)
    model = Transformer(small_config(**request.param), V)
    for parameter in model.parameters():
        if parameter.dim() == 1:
            nn.init.normal_(parameter, std=0.5)
    return model.eval()


@pytest.mark.parametrize("beams", [1, 3])
@torch.no_grad()
def test_step_by_step_equals_all_at_once(model: Transformer, beams: int) -> None:
    random = Random(beams)
    search = Search(model, beams, [[4, 5, 6, 7, 3], [8, 3]])
    for _ in range(BLOCK + 2):  # past the end of a block
        search.assert_step([random.randrange(V) for _ in search.rows])


@torch.no_grad()
def test_a_sentence_joins_later_and_the_earlier_one_leaves(model: Transformer) -> None:
    search, late = Search(model, 2, [[4, 5, 6, 7, 8, 9, 3]]), Search(model, 2, [[10, 3]])
    for token in (2, 11, 12):
        search.assert_step([token] * 2)
    search.extend(late)
    assert search.cache.positions(64).flatten().tolist() == [3, 3, 0, 0]
    search.assert_step([13, 14, 2, 2])
    search.select([1])  # its three empty columns, and five of padding, go too
    assert search.cache.length == 1
    assert search.cache.mask() is None
    assert search.cache.cross[0][0].shape[2] == 2
    search.assert_step([15, 16])


@torch.no_grad()
def test_a_row_past_the_models_length_stays_on_its_last_position(model: Transformer) -> None:
    cache = Search(model, 1, [[4, 3]]).cache
    cache.length = 70
    assert cache.positions(64).tolist() == [[63]]


@pytest.mark.parametrize("seed", range(3))
@torch.no_grad()
def test_any_sequence_of_events(model: Transformer, seed: int) -> None:
    random = Random(seed)
    beams = random.choice([1, 2, 3])

    def newcomers() -> Search:
        sources = [[random.randrange(4, V) for _ in range(random.randint(1, 6))] for _ in range(random.randint(1, 3))]
        return Search(model, beams, sources)

    search = newcomers()
    for _ in range(25):
        search.assert_step([random.randrange(V) for _ in search.rows])
        event = random.choice(["nothing", "reorder", "select", "all leave", "extend"])
        if event == "reorder":
            search.reorder([row - row % beams + random.randrange(beams) for row in range(len(search.rows))])
        elif event == "select" and len(search.sources) > 1:
            search.select(random.sample(range(len(search.sources)), len(search.sources) - 1))
        elif event == "all leave":
            search.select([])
            assert search.cache.rows == 0
        if (event == "extend" and len(search.sources) < 6) or not search.sources:
            other = newcomers()
            for _ in range(random.randint(0, 4)):
                other.assert_step([random.randrange(V) for _ in other.rows])
            search.extend(other)
