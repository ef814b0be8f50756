import torch

from mt.decoding.alignment import align, group_words


def attention(layers: int = 3) -> torch.Tensor:
    """[L, B = 1, H = 2, T = 2, S = 3]; the last layer but one says 1-0 and 2-1 on average, the others 0-0 and 0-1."""
    elsewhere = torch.tensor([[1.0, 0, 0], [1, 0, 0]]).expand(2, 2, 3)
    one = torch.tensor([[[0.0, 0.8, 0.2], [0.2, 0.2, 0.6]], [[0.6, 0.4, 0.0], [0.6, 0.0, 0.4]]])
    stack = [elsewhere] * layers
    stack[max(layers - 2, 0)] = one
    return torch.stack(stack)[:, None]


def test_the_heads_of_the_last_layer_but_one_are_averaged() -> None:
    for layers in (1, 2, 3):
        [alignment] = align(attention(layers), [3], [2])
        expected = torch.tensor([[0.3, 0.6, 0.1], [0.4, 0.1, 0.5]])
        torch.testing.assert_close(alignment.soft, expected)
        assert alignment.pairs == ((1, 0), (2, 1))


def test_other_layers_and_shorter_sentences() -> None:
    [alignment] = align(attention(), [3], [2], layers=[0, 2])
    assert alignment.pairs == ((0, 0), (0, 1))
    [alignment] = align(attention(), [2], [2])  # the last source position, say EOS, left out
    assert alignment.soft.shape == (2, 2)
    assert alignment.pairs == ((1, 0), (0, 1))
    [alignment] = align(attention(), [3], [0])
    assert alignment.pairs == ()


def test_each_sentence_keeps_its_own_lengths() -> None:
    both = attention().repeat(1, 2, 1, 1, 1)
    first, second = align(both, [3, 1], [2, 1])
    assert first.soft.shape == (2, 3) and second.soft.shape == (1, 1)
    assert second.pairs == ((0, 0),)


def test_pieces_are_grouped_into_words() -> None:
    [pieces] = align(attention(), [3], [2])
    words = group_words(pieces, source_starts=[False, False, True], target_starts=[True, False])
    torch.testing.assert_close(words.soft, torch.tensor([[0.7, 0.3]]))  # means of 0.9, 0.5 and of 0.1, 0.5
    assert words.pairs == ((0, 0),)
    apart = group_words(pieces, [True] * 3, [True] * 2)
    assert torch.equal(apart.soft, pieces.soft) and apart.pairs == pieces.pairs
