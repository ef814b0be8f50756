import pytest
import torch
import torch.distributed as dist

from mt.config import ModelConfig
from mt.distributed import World
from mt.model.transformer import Transformer
from mt.training.precision import WorkingCopy, choose_precision

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
