"""Beam search for translations that must contain some words and must not contain others.

Beams are allocated by the number of words that hypotheses contain, as in Post and Vilar 2018 ("Fast Lexically
Constrained Decoding with Dynamic Beam Allocation for Neural Machine Translation"), section 3, with two differences:

- A word is an automaton rather than a list of ids, so that the model can choose among the word's forms.
- A required word can have cues: the words that the model would use instead. If a model never uses the required word,
  it may give the word a low probability at every position. The probability of the cues then determines where the word
  is placed.

Shapes: B sentences, K beams per sentence, R = B x K rows, Q candidates per beam, V vocabulary. TermConstraints defines
A, E, F, M, N and P.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from mt.decoding.beam import BeamSearch
from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import SearchOptions, SpecialIds
from mt.decoding.scores import best
from mt.decoding.search_state import SentenceTable
from mt.decoding.term_constraints import TermConstraints

MIN_CUE = -12.0
"""Lower bound of `place` and of `agreement` in ConstrainedBeamSearch; both are log-probabilities."""

MIN_FINISHED = 5
"""A search can end with n = max(`n_best`, min(K, MIN_FINISHED)) finished hypotheses, where BeamSearch requires K.

Before the last step, a hypothesis can end only if fewer than n hypotheses with all required words are more probable.
"""

BORROWED_CUE = -2.0
"""Added to the log-probability of a cue that another beam of the sentence has predicted."""


class Candidates(NamedTuple):
    """Q candidates for each beam."""

    ids: Tensor  # [B, K, Q]
    values: Tensor  # [B, K, Q] log-probabilities
    word: Tensor  # [B, K, Q] the automaton of the word to which the id belongs, or -1


@dataclass
class ConstrainedBeamSearch(SentenceTable):
    """Beam search with TermConstraints for each sentence. A hypothesis that lacks a required word cannot end.

    The candidates of a step are the best continuations of each beam, and the first ids of each required word that the
    beam lacks. A beam that has begun a word in this way continues the word until it is complete. Candidates are grouped
    by the number of words that they contain and by whether they are within a word. The best candidate of each group is
    kept, then the second best of each group, and so on, until K candidates are kept. Of these K, a candidate is dropped
    if at least `n_best` others have log-probabilities that are higher by more than `threshold` and belong to its group
    or to groups with more words (threshold pruning: Freitag and Al-Onaizan 2017, "Beam Search Strategies for Neural
    Machine Translation"). Most steps then have few rows.

    The log-probability of beginning a missing word in beam k with id i, one of the word's first ids, is

        place_k + agreement_k + form_ki
        place_k     = max(c_k, max over j in related(k) of c_j + BORROWED_CUE)
        agreement_k = min(0, s_k - s_b), b = argmax over j in related(k) of total_j + place_j + s_j
        form_ki     = log p_k(i) - s_k + cost_i

    - c_k is the log-probability that the next token is the first id of a cue.
    - s_k is the log-probability that the next token is a first id of the word.
    - total_k is the log-probability of the hypothesis, and cost_i an entry of `costs`.
    - related(k) are the beams that continue the same hypothesis of two steps ago. They can differ in the token before
      the word, such as an article, which must agree with the word.

    `place` and `agreement` are at least MIN_CUE. For a word without cues, place + agreement is max(s_k, MIN_CUE).
    """

    beam: BeamSearch
    # From `columns` to `threshold`: the fields of TermConstraints, stacked.
    columns: Tensor  # int16 [B, V]
    following: Tensor  # [B, N, M]
    counts: Tensor  # bool [B, N, M]
    proposals: Tensor  # [B, N, P]
    completions: Tensor  # [B, N, F]
    full: Tensor  # bool [B, N]
    begins: Tensor  # [B, A, P]
    costs: Tensor  # [B, A, P]
    cues: Tensor  # [B, A, E]
    starts: Tensor  # [B, A]
    needed: Tensor  # [B, A]
    allowed: Tensor  # [B, A]
    endings: Tensor  # [B, A]
    patience: Tensor  # [B]
    threshold: Tensor  # [B, 1]
    nodes: Tensor  # [B, K, A] current node of each automaton
    occurrences: Tensor  # [B, K, A] number of times that a word has occurred
    word: Tensor  # [B, K] the automaton of the word that the beam is writing, or -1
    parents: Tensor  # [B, K] the beam that each beam continues
    grandparents: Tensor  # [B, K] the beam of two steps ago that each beam continues

    @classmethod
    def start(
        cls,
        source_lengths: Sequence[int],
        options: Sequence[SearchOptions],
        constraints: Sequence[TermConstraints],
        prefixes: Sequence[Sequence[int]],
        special: SpecialIds,
        device: torch.device,
    ) -> Self:
        """Return a search before its first step. All sentences must have the same beam size.

        Raises:
            RequestError: A prefix is invalid (see `check_prefixes`).
        """
        beams = options[0].beam_size
        beam = BeamSearch.start(source_lengths, options, prefixes, special, device)
        beam.margin.fill_(torch.inf)  # a hypothesis with a word may be much worse than one without
        beam.needed = (beam.nth + 1).clamp(min=min(beams, MIN_FINISHED))
        starts = _stack([np.asarray(sentence.starts) for sentence in constraints], device)
        nodes = starts[:, None].expand(-1, beams, -1)
        zeros = torch.zeros((len(options), beams), dtype=torch.int64, device=device)
        return cls(
            beam=beam,
            columns=_stack([sentence.columns for sentence in constraints], device).to(torch.int16),
            following=_stack([sentence.following for sentence in constraints], device),
            counts=_stack([sentence.counts for sentence in constraints], device).bool(),
            proposals=_stack([sentence.proposals for sentence in constraints], device),
            completions=_stack([sentence.completions for sentence in constraints], device),
            full=_stack([sentence.full for sentence in constraints], device).bool(),
            begins=_stack([sentence.begins for sentence in constraints], device),
            costs=_stack([sentence.costs for sentence in constraints], device, torch.float32),
            cues=_stack([sentence.cues for sentence in constraints], device),
            starts=starts,
            needed=_stack([np.asarray(sentence.needed) for sentence in constraints], device),
            allowed=_stack([np.asarray(sentence.allowed) for sentence in constraints], device),
            endings=_stack([np.asarray(sentence.endings) for sentence in constraints], device, torch.float32),
            patience=torch.tensor([sentence.patience for sentence in constraints], device=device),
            threshold=torch.tensor([[sentence.threshold] for sentence in constraints], device=device),
            nodes=nodes.clone(),
            occurrences=torch.zeros_like(nodes),
            word=zeros - 1,
            parents=zeros,
            grandparents=zeros.clone(),
        )

    @property
    def tokens(self) -> Tensor:
        return self.beam.tokens

    @property
    def finished(self) -> Tensor:
        return self.beam.finished

    def results(self, sentences: Sequence[int]) -> list[list[Hypothesis]]:
        """Return the best distinct hypotheses of each sentence, best first. Two beams may find the same translation."""
        hypotheses = self.beam.best_of(sentences, torch.full_like(self.beam.steps, self.word.shape[1]))
        counts = (self.beam.nth[sentences, 0] + 1).tolist()
        distinct = ({hypothesis.tokens: hypothesis for hypothesis in reversed(ranked)} for ranked in hypotheses)
        return [
            [hypothesis for hypothesis in ranked if unique[hypothesis.tokens] is hypothesis][:count]
            for ranked, unique, count in zip(hypotheses, distinct, counts, strict=True)
        ]

    def advance(self, logits: Tensor) -> Tensor | None:
        beams = self.word.shape[1]
        log_probs, ends = self.beam.scores(logits)
        places = self._places(log_probs)
        written = self.occurrences + _at(self.full, self.nodes)
        self._forbid(log_probs, written)
        ids, values, word = self._candidates(log_probs, places, written)  # [B, K, Q]
        nodes, occurrences = self._states_after(ids)  # [B, K, Q, A]
        complete = _at(self.full, nodes).gather(3, word.clamp(min=0)[..., None])[..., 0] & (word >= 0)
        word = word.masked_fill(complete, -1)
        values = values.masked_fill(_duplicates(ids, values, complete, min(beams, logits.shape[1])), -torch.inf)
        totals = values + self._changes(nodes, occurrences) + self.beam.alive_totals[:, :, None]
        groups = self._groups(nodes, occurrences, word).flatten(1)
        ranks = totals.flatten(1)
        chosen = _allocate(ranks, groups, beams)  # [B, K]

        ends = ends.masked_fill(~(written >= self.needed[:, None]).all(2), -torch.inf)
        rivals = ranks.masked_fill(groups < _last_group(beams), -torch.inf)
        ends = self.beam.without_outranked(ends, rivals)

        index, parents = chosen[:, :, None].expand(-1, -1, self.nodes.shape[2]), chosen // ids.shape[2]
        self.nodes.copy_(nodes.flatten(1, 2).gather(1, index))
        self.occurrences.copy_(occurrences.flatten(1, 2).gather(1, index))
        self.word.copy_(word.flatten(1).gather(1, chosen))
        self.grandparents.copy_(self.parents.gather(1, parents))
        self.parents.copy_(parents)
        alive, reached = ranks.gather(1, chosen), groups.gather(1, chosen)
        alive = alive.masked_fill(self._falls_behind(alive, reached), -torch.inf)
        late = (self.beam.steps >= self.patience) & (self.beam.pool[:, 0] > -torch.inf)
        hopeless = late[:, None] & (reached < _last_group(beams))
        leading = alive.masked_fill(hopeless, -torch.inf)
        return self.beam.record_step(alive, parents, ids.flatten(1).gather(1, chosen), ends, leading)

    def _falls_behind(self, totals: Tensor, groups: Tensor) -> Tensor:
        """Return bool [B, K], True for each candidate that `threshold` drops (see the docstring of the class).

        `totals` and `groups` [B, K] are the log-probabilities and groups of the K kept candidates.
        """
        rivals = (groups[:, None] >= groups[:, :, None]) & (totals[:, None] > (totals + self.threshold)[:, :, None])
        return rivals.sum(2) > self.beam.nth

    def _places(self, log_probs: Tensor) -> Tensor:
        """Return place + agreement of each beam and word, [B, K, A] (see the docstring of the class)."""
        cued = (self.cues > 0).any(2)[:, None]
        cue, first = self._any_of(log_probs, self.cues), self._any_of(log_probs, self.begins)
        alive = (self.beam.alive_totals > -torch.inf)[:, None]
        related = (self.grandparents[:, :, None] == self.grandparents[:, None]) & (self.word < 0)[:, None] & alive
        unrelated = ~related[..., None]  # [B, K, K, 1]
        borrowed = cue[:, None].masked_fill(unrelated, -torch.inf).amax(2) + BORROWED_CUE
        place = cue.maximum(borrowed).clamp(min=MIN_CUE)
        joint = (self.beam.alive_totals[..., None] + place + first)[:, None].masked_fill(unrelated, -torch.inf)
        highest = first.gather(1, joint.argmax(2))
        agreement = (first - highest).nan_to_num(nan=0.0).clamp(min=MIN_CUE, max=0)
        return torch.where(cued, place + agreement, first.clamp(min=MIN_CUE))

    def _any_of(self, log_probs: Tensor, ids: Tensor) -> Tensor:
        """Return the log-probability [B, K, A] that the next token is one of the ids in `ids[b, a]`.

        `ids` is [B, A, E] or [B, A, P].
        """
        batch, beams, automata = self.nodes.shape
        index = ids.flatten(1)[:, None].expand(-1, beams, -1).flatten(0, 1)
        return log_probs.gather(1, index).view(batch, beams, automata, -1).logsumexp(3)

    def _forbid(self, log_probs: Tensor, written: Tensor) -> None:
        """Forbid, in place, each id that would complete one more occurrence of a word than allowed.

        `log_probs` is [R, V]. `written` [B, K, A] is the number of times that each word occurs in each hypothesis.
        """
        spent = written >= self.allowed[:, None]  # [B, K, A]
        ids = _at(self.completions, self.nodes) * spent[..., None]  # padding has -inf already
        log_probs.scatter_(1, ids.view(log_probs.shape[0], -1), -torch.inf)

    def _candidates(self, log_probs: Tensor, places: Tensor, written: Tensor) -> Candidates:
        """Return the candidates of all beams.

        `places` [B, K, A] is the result of `_places`. `written` [B, K, A] is the number of times that each word occurs
        in each hypothesis.
        """
        kinds = (
            self._best_continuations(log_probs),
            self._first_ids(log_probs, places, written),
            self._next_ids(log_probs),
        )
        return Candidates(*(torch.cat(tensors, 2) for tensors in zip(*kinds, strict=True)))

    def _best_continuations(self, log_probs: Tensor) -> Candidates:
        """Return the most probable ids of each beam that is not within a word."""
        values, ids = best(log_probs, min(self.word.shape[1], log_probs.shape[1]))
        ids, values = (tensor.view(*self.word.shape, -1) for tensor in (ids, values))
        return Candidates(ids, values.masked_fill((self.word >= 0)[:, :, None], -torch.inf), torch.full_like(ids, -1))

    def _first_ids(self, log_probs: Tensor, places: Tensor, written: Tensor) -> Candidates:
        """Return the first ids of the words that a beam lacks, for each beam that is not within a word."""
        begins = self.begins[:, None].expand(-1, self.word.shape[1], -1, -1)  # [B, K, A, P]
        first = log_probs.gather(1, begins.flatten(2).flatten(0, 1)).view(begins.shape)
        form = first - first.logsumexp(3, keepdim=True) + self.costs[:, None]
        lacking = (self.word < 0)[:, :, None] & (written < self.needed[:, None])
        values = (form + places[..., None]).masked_fill(~lacking[..., None] | (first == -torch.inf), -torch.inf)
        word = torch.arange(begins.shape[2], device=begins.device).view(1, 1, -1, 1).expand(begins.shape)
        return Candidates(begins.flatten(2), values.flatten(2), word.flatten(2))

    def _next_ids(self, log_probs: Tensor) -> Candidates:
        """Return the next ids of the word that a beam is within.

        The log-probability of an id is relative to the most probable of the beams that are at the same node of a word.
        """
        within, alive = self.word >= 0, self.beam.alive_totals > -torch.inf
        node = self.nodes.gather(2, self.word.clamp(min=0)[:, :, None])[:, :, 0]
        ids = _at(self.proposals, node) * within[:, :, None]  # [B, K, P]
        log_probs = log_probs.gather(1, ids.flatten(0, 1)).view(ids.shape)
        same_node = (node[:, :, None] == node[:, None]) & (alive & within)[:, None]
        highest = log_probs.logsumexp(2)[:, None].masked_fill(~same_node, -torch.inf).amax(2)
        possible = alive[:, :, None] & (log_probs > -torch.inf)
        values = (log_probs - highest[:, :, None]).masked_fill(~possible, -torch.inf)
        return Candidates(ids, values, self.word[:, :, None].expand_as(ids))

    def _states_after(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Return the values of `nodes` and `occurrences` after each candidate, each [B, K, Q, A].

        `tokens` [B, K, Q] are the ids of the candidates.
        """
        columns = self.columns.gather(1, tokens.flatten(1)).view(*tokens.shape, 1).long()
        places = self.nodes[:, :, None, :] * self.following.shape[2] + columns
        nodes = self.following.flatten(1).gather(1, places.flatten(1)).view(places.shape)
        counted = self.counts.flatten(1).gather(1, places.flatten(1)).view(places.shape)
        return nodes, self.occurrences[:, :, None, :] + counted

    def _changes(self, nodes: Tensor, occurrences: Tensor) -> Tensor:
        """Return the amount [B, K, Q] to add to the log-probability of each candidate.

        A candidate that continues a complete, still needed word gets the word's entry of `endings`, or -inf if it turns
        the word into another word. Other candidates get 0.
        """
        complete = _at(self.full, self.nodes) & (self.occurrences < self.needed[:, None])  # [B, K, A]
        goes_on = complete[:, :, None] & (occurrences == self.occurrences[:, :, None])
        leaves = (nodes <= self.starts[:, None, None] + 1) & goes_on
        ending = torch.where(goes_on, self.endings[:, None, None], 0.0).sum(3)
        return ending.masked_fill(leaves.any(3), -torch.inf)

    def _groups(self, nodes: Tensor, occurrences: Tensor, word: Tensor) -> Tensor:
        """Return the group number of each candidate, [B, K, Q].

        The number grows by 2 with each required word in the hypothesis, and is higher by 1 within a word. It is
        `_last_group` for a hypothesis with all words. If there are many words, the numbers are scaled down, so that
        each group has at least two beams.
        """
        written = (occurrences + _at(self.full, nodes)).minimum(self.needed[:, None, None]).sum(3)
        group = 2 * written + (word >= 0)
        highest = 2 * self.needed.sum(1)[:, None, None]
        last = _last_group(self.nodes.shape[1])
        return torch.where(highest > last, group * last // highest.clamp(min=1), group + (last - highest))


def _duplicates(ids: Tensor, values: Tensor, complete: Tensor, free: int) -> Tensor:
    """Return bool [B, K, Q], True for each candidate to drop because another candidate of its beam has the same id.

    One of the first `free` candidates of a beam, the best continuations, can have the same id as a candidate that a
    constraint proposed and that completes a word. The less probable of the two is dropped.
    """
    same = (ids[:, :, :free, None] == ids[:, :, None]) & complete[:, :, None]
    worse = values[:, :, :free, None] < values[:, :, None]
    first = (same & worse).any(3)
    return torch.cat((first, ((same & ~worse).any(2))[:, :, free:]), 2)


def _at(table: Tensor, nodes: Tensor) -> Tensor:
    """Return the rows of `table` [B, N, ...] at the indices `nodes` [B, ...]: table[b, nodes[b, ...]]."""
    batch = torch.arange(nodes.shape[0], device=nodes.device).view(-1, *[1] * (nodes.dim() - 1))
    return table[batch, nodes]


def _last_group(beams: int) -> int:
    """Return the number of the group of the hypotheses that contain all required words."""
    return beams // 2


def _allocate(totals: Tensor, groups: Tensor, beams: int) -> Tensor:
    """Return the indices [B, K] of the kept candidates: the best of each group, then each second best, and so on.

    `totals` and `groups` are the log-probabilities and the group numbers [B, Q] of the candidates of all beams.
    """
    batch, width = totals.shape
    dead = _last_group(beams) + 1
    groups = torch.where(totals == -torch.inf, dead, groups)
    order = totals.argsort(stable=True, dim=1, descending=True)
    order = order.gather(1, groups.gather(1, order).argsort(stable=True, dim=1))
    groups = groups.gather(1, order)
    ranks = torch.arange(width, device=totals.device).expand(batch, -1) - torch.searchsorted(groups, groups)
    keys = torch.where(groups == dead, width, ranks) * (dead + 1) + dead - groups
    return order.gather(1, keys.topk(beams, 1, largest=False).indices)


def _stack(arrays: Sequence[npt.NDArray[Any]], device: torch.device, dtype: torch.dtype = torch.int64) -> Tensor:
    """Stack one array per sentence into a tensor [B, ...], padded with zeros."""
    shape = [len(arrays), *(max(sizes) for sizes in zip(*(array.shape for array in arrays), strict=True))]
    stacked = np.zeros(shape, dtype=np.float32 if dtype is torch.float32 else np.int64)
    for number, array in enumerate(arrays):
        stacked[number][tuple(slice(size) for size in array.shape)] = array
    return torch.from_numpy(stacked).to(device)
