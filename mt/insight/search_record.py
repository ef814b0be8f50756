"""Record of a beam search as a tree: every continuation that was kept, finished or pruned, with the reason."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from mt.decoding.beam import BeamSearch
from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import SearchOptions
from mt.decoding.scorer import Scorer, State
from mt.decoding.scores import best
from mt.engine.backends.torch import SearchBatch

ALIVE, FINISHED, PRUNED = "alive", "finished", "pruned"


@dataclass
class Node:
    """A hypothesis at one step. `parent` is the index of the node that it continues, and `token` is its last token.

    `total` is the log-probability of the hypothesis. `fate` is ALIVE, FINISHED or PRUNED, with its `reason`.
    `score` is `total` divided by the length penalty, if the hypothesis is finished.
    """

    step: int  # from 1; the root has 0
    parent: int
    token: int
    total: float
    fate: str = ALIVE
    reason: str = ""
    score: float | None = None
    is_best: bool = False  # on the path of the best hypothesis


@dataclass
class SearchTree:
    """The tree of one search, and its results. Node 0 is the root, BOS."""

    beam_size: int
    hypotheses: list[Hypothesis]
    nodes: list[Node]
    stop: str  # why the search ended

    def tokens(self, node: Node) -> tuple[int, ...]:
        path: list[int] = []
        while node.step:
            path.append(node.token)
            node = self.nodes[node.parent]
        return tuple(reversed(path))


@dataclass
class RecordedBeamSearch(BeamSearch):
    """The reference beam search for one sentence. It also records its hypotheses in a tree."""

    nodes: list[Node] = field(default_factory=lambda: [Node(0, 0, 0, 0.0)])
    beams: list[int] = field(default_factory=lambda: [0])  # the nodes of the live beams, by beam
    compared: tuple[Tensor, ...] = ()  # totals [K, V] of all continuations, and totals [1, K] of all ends
    stop: str = ""

    def scores(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        log_probs, ends = super().scores(logits)
        self.compared = log_probs + self.alive_totals.view(-1, 1), ends.clone()
        return log_probs, ends

    def record_step(
        self, alive: Tensor, parents: Tensor, tokens: Tensor, ends: Tensor, leading: Tensor
    ) -> Tensor | None:
        """Record all continuations of this step, and then continue the search as the parent class does."""
        penalty = float(self.penalty[0, self.steps[0]])
        self._record(alive[0].tolist(), parents[0].tolist(), tokens[0].tolist(), (ends / penalty)[0].tolist())
        rows = super().record_step(alive, parents, tokens, ends, leading)
        for number, total in zip(self.beams, self.alive_totals[0].tolist(), strict=True):
            if number and total == -torch.inf:
                reason = f"more than {float(self.margin[0, 0]):.1f} below the best of this step"
                self.nodes[number].fate, self.nodes[number].reason = PRUNED, reason
        if not self.running[0]:
            self._end(float(alive.amax()), penalty)
        return rows

    def _record(self, alive: list[float], parents: list[int], tokens: list[int], scores: list[float]) -> None:
        step, beams, count = int(self.steps[0]) + 1, self.beams, len(alive)
        continuations, ends = self.compared
        for beam, (total, score) in enumerate(zip(ends[0].tolist(), scores, strict=True)):
            if score > -torch.inf:
                reason = f"EOS is among the best {count} of all continuations"
                if step > int(self.constraints.last[0]):
                    reason = f"EOS at the maximum length of {step} tokens"
                self.nodes.append(Node(step, beams[beam], self.special.eos, total, FINISHED, reason, score))
            elif total > -torch.inf:
                reason = f"EOS, {total:.2f}, is not among the best {count} of all continuations"
                self.nodes.append(Node(step, beams[beam], self.special.eos, total, PRUNED, reason))
        self.beams = []
        chosen = {(parent, token) for parent, token in zip(parents, tokens, strict=True)}
        for parent, token, total in zip(parents, tokens, alive, strict=True):
            self.beams.append(len(self.nodes) if total > -torch.inf else 0)
            if total > -torch.inf:
                self.nodes.append(Node(step, beams[parent], token, total))
        worst, rank = alive[-1], sum(total > -torch.inf for total in alive)
        for beam, token, total in _ranked(continuations, 2 * count):
            if (beam, token) not in chosen:
                rank += 1
                reason = f"rank {rank} of the continuations: {total:.2f} is below rank {count}, {worst:.2f}"
                self.nodes.append(Node(step, beams[beam], token, total, PRUNED, reason))

    def _end(self, leading: float, penalty: float) -> None:
        """Record why the search ended. The hypotheses that were still alive become pruned."""
        worst, limit = float(self.pool[0, self.nth[0, 0]]), float(self.largest_penalty[0])
        if leading == -torch.inf:
            self.stop = "no hypothesis has an allowed continuation"
        elif self.alive_totals[0, 0] == -torch.inf:
            self.stop = f"all live hypotheses are more than {float(self.margin[0, 0]):.1f} below one that has ended"
        elif self.steps[0] > self.constraints.last[0]:
            self.stop = f"the maximum length of {int(self.constraints.last[0]) + 1} tokens"
        elif leading / limit <= worst:
            self.stop = f"no live hypothesis can exceed the score {worst:.3f}: its bound is {leading / limit:.3f}"
        else:
            self.stop = (
                f"{self.pool.shape[1]} hypotheses are finished, and at its present length the best live one scores "
                f"{leading / penalty:.3f}, not above {worst:.3f}"
            )
        for node in (self.nodes[number] for number in self.beams if number):
            node.fate, node.reason = PRUNED, f"the search ended: {self.stop}"


def _ranked(totals: Tensor, count: int) -> Iterator[tuple[int, int, float]]:
    """Yield (beam, token, total) of the `count` largest totals, the largest first. Totals of -inf are left out.

    `totals` has the shape [K, V], with K beams and V ids of the vocabulary.
    """
    values, ids = best(totals, min(count, totals.shape[1]))
    ranked, places = values.flatten().sort(descending=True, stable=True)
    for total, place in zip(ranked[:count].tolist(), places[:count].tolist(), strict=True):
        if total > -torch.inf:
            yield place // values.shape[1], int(ids.flatten()[place]), total


@torch.inference_mode()
def record_search(
    scorer: Scorer[State], source: Sequence[int], options: SearchOptions, prefix: Sequence[int] = ()
) -> SearchTree:
    """Run beam search on a source and return the tree of the search.

    `source` are ids with tag and EOS. Every hypothesis begins with `prefix`. If the model fails, the tree has no
    hypotheses.
    """
    search = RecordedBeamSearch.start([len(source)], [options], [prefix], scorer.special, scorer.device)
    batch = SearchBatch(scorer, search, scorer.start([source], options.beam_size))
    while not bool(search.finished.all()):
        batch.advance()
    tree = SearchTree(options.beam_size, search.results([0])[0], search.nodes, search.stop)
    finished = sorted((node for node in tree.nodes if node.score is not None), key=lambda node: -(node.score or 0))
    for rank, node in enumerate(finished, start=1):
        node.reason += f"; score {node.score:.3f}, rank {rank} of {len(finished)} finished"
    node = finished[0] if finished else tree.nodes[0]
    while not node.is_best:
        node.is_best = True
        node = tree.nodes[node.parent]
    return tree
