import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

from mt.config import ModelConfig, TrainingConfig
from mt.distributed import World
from mt.model.transformer import Transformer
from mt.training.optimizer import Muon, layer_matrices, optimizers, orthogonal, scaled_step
from mt.training.precision import WorkingCopy, choose_precision

TINY = ModelConfig(encoder_layers=1, decoder_layers=2, d_model=8, d_ff=16, heads=2, tie_output=False)


def random(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def stepped(optimizer: torch.optim.Optimizer, parameters: list[nn.Parameter], gradients: list[Tensor]) -> None:
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = 2 * gradient
    scaled_step(optimizer, 0.1, torch.tensor(2.0))


def test_it_is_torchs_muon() -> None:
    """In steps of one size, for any shape, and with gradients averaged over time."""
    shapes = [(4, 4), (4, 6), (6, 4), (4, 4)]
    mine, theirs = ([nn.Parameter(random(*shape, seed=n)) for n, shape in enumerate(shapes)] for _ in range(2))
    ours = Muon(mine, torch.bfloat16, World())
    reference = torch.optim.Muon(theirs, lr=0.1, weight_decay=0, adjust_lr_fn="match_rms_adamw")
    for step in range(5):
        gradients = [random(*shape, seed=100 * step + n) for n, shape in enumerate(shapes)]
        stepped(ours, mine, gradients)
        for parameter, gradient in zip(theirs, gradients, strict=True):
            parameter.grad = gradient
        reference.step()
    for a, b in zip(mine, theirs, strict=True):
        assert (a - b).abs().max() < 0.005, "bfloat16 rounds the two in other places"
    assert orthogonal(torch.zeros(2, 4, 6), torch.float32).eq(0).all()


def test_one_without_a_gradient_stays_and_the_others_step_as_if_alone() -> None:
    together, alone = ([nn.Parameter(random(4, 4, seed=seed)) for seed in range(3)] for _ in range(2))
    gradient = random(4, 4, seed=9)
    optimizer = Muon(together, torch.float32, World())
    stepped(optimizer, together[1:2], [gradient])
    assert set(optimizer.state) == {together[1]}
    stepped(Muon([alone[1]], torch.float32, World()), [alone[1]], [gradient])
    assert [torch.equal(a, b) for a, b in zip(together, alone, strict=True)] == [True] * 3
    assert not torch.equal(together[1], random(4, 4, seed=1))


def test_an_optimizer_that_ignores_the_divisor_is_refused() -> None:
    parameter = nn.Parameter(torch.ones(2))
    (adam,) = optimizers(nn.ParameterList([parameter]), TrainingConfig(optimizer="adam"), torch.float32, World())
    stepped(adam, [parameter], [torch.ones(2)])
    assert parameter.tolist() == pytest.approx([0.9, 0.9])
    with pytest.raises(TypeError, match="SGD ignores grad_scale"):
        stepped(torch.optim.SGD([parameter]), [parameter], [torch.ones(2)])


def test_muon_has_the_matrices_of_the_layers_and_adam_all_else() -> None:
    model = Transformer(TINY, 20)
    assert len(layer_matrices(model)) == 1 * (4 + 2) + 2 * (4 + 4 + 2)
    adam, muon = optimizers(model, TrainingConfig(optimizer="muon"), torch.float32, World())
    assert [type(adam), type(muon)] == [torch.optim.Adam, Muon]
    (alone,) = optimizers(model, TrainingConfig(optimizer="adam"), torch.float32, World())
    assert ids(alone) == {id(p) for p in model.parameters()}
    assert ids(muon) == {id(p) for p in layer_matrices(model)}
    assert ids(adam) | ids(muon) == ids(alone) and not ids(adam) & ids(muon)
    model.encoder.requires_grad_(False)
    trained = [ids(each) for each in optimizers(model, TrainingConfig(optimizer="muon"), torch.float32, World())]
    assert set().union(*trained) == {id(p) for name, p in model.named_parameters() if not name.startswith("encoder.")}
    embeddings = {id(p) for name, p in model.named_parameters() if "embedding" in name}
    assert embeddings and embeddings <= ids(adam)


def ids(optimizer: torch.optim.Optimizer) -> set[int]:
    return {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}


CPU = torch.device("cpu")


def tiny() -> Transformer:
    torch.manual_seed(1)
    return Transformer(ModelConfig(encoder_layers=1, decoder_layers=1, d_model=8, d_ff=8, heads=2), 10)


def test_in_bfloat16_a_copy_works_and_the_master_stays_exact() -> None:
    model = tiny()
    working = WorkingCopy(model, "bfloat16")
    assert {p.dtype for p in working.model.parameters()} == {torch.bfloat16}
    mine, weight = working.model.embedding.tokens.weight, model.embedding.tokens.weight
    with torch.no_grad():
        weight.fill_(1 + 1 / 1024)  # bfloat16 has 8 bits: 1
    working.refresh()
    assert weight.eq(1 + 1 / 1024).all() and mine.eq(1).all()


def test_gradients_of_several_batches_add_up_in_float32() -> None:
    """256 + 1 is 256 in bfloat16."""
    model = tiny()
    working = WorkingCopy(model, "bfloat16")
    for factor in (256, 1):
        (working.model.embedding.tokens.weight * factor).sum().backward()
        working.collect()
    weight = model.embedding.tokens.weight
    assert weight.grad is not None and weight.grad.dtype == torch.float32
    assert weight.grad.eq(257).all()
    assert all(p.grad is None for p in working.model.parameters())
    assert all(p.grad is None for name, p in model.named_parameters() if p is not weight)


@pytest.mark.parametrize(
    ("capabilities", "used", "chosen"),
    [
        ({"avx2": True, "avx512_f": True, "avx512_bf16": False, "amx_bf16": False}, True, "float32"),
        ({"avx512_bf16": True}, True, "bfloat16"),
        ({"amx_bf16": True}, True, "bfloat16"),
        ({"neon": True, "bf16": True}, True, "bfloat16"),
        ({"neon": True, "bf16": True}, False, "float32"),  # Apple's processors, whose instructions torch does not use
        ({"neon": True, "bf16": False}, True, "float32"),
        ({}, True, "float32"),
        (None, True, "float32"),  # a torch that does not know its processor
    ],
)
def test_auto_is_what_the_processor_has_instructions_for(
    monkeypatch: pytest.MonkeyPatch, capabilities: dict[str, bool] | None, used: bool, chosen: str
) -> None:
    if capabilities is None:
        monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    else:
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: used)
    assert choose_precision("auto", CPU, World()) == chosen
    assert choose_precision("float32", CPU, World()) == "float32"
    assert choose_precision("bfloat16", CPU, World()) == "bfloat16"


@pytest.mark.parametrize(("able", "chosen"), [(1.0, "float32"), (2.0, "bfloat16")])
def test_one_process_that_cannot_keeps_all_in_float32(
    monkeypatch: pytest.MonkeyPatch, able: float, chosen: str
) -> None:
    monkeypatch.setattr(dist, "all_reduce", lambda mine: mine.fill_(able))
    assert choose_precision("auto", CPU, World(rank=0, size=2)) == chosen


def test_a_pass_that_failed_half_way_leaves_nothing_to_the_next_update() -> None:
    working = WorkingCopy(tiny(), "bfloat16")
    working.model.embedding.tokens.weight.sum().backward()  # and no collect: memory ran out
    working.refresh()
    assert all(p.grad is None for p in working.model.parameters())
