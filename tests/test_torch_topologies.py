"""Real topologies with random weights, exported: parted equals eager under random supports and under
budgets, the engines are as few as the bound without a budget, and none is over a budget.

CUTSET_LONG=1: all of them, ten supports and three budgets each; else a seeded few."""
import os
import random
import warnings

import pytest
import torch
from torch.utils._pytree import tree_leaves

import cutset
import cutset.torch
from torch_checks import engines, same, weight_bytes

LONG = bool(os.environ.get("CUTSET_LONG"))


def image(size=64):
    return (torch.rand(1, 3, size, size, generator=torch.Generator().manual_seed(1)),)


def words(n=12, top=90):
    return (torch.randint(0, top, (1, n), generator=torch.Generator().manual_seed(1)),)


def vision(name, size=64, **options):
    def make():
        import torchvision.models as models
        return getattr(models, name)(weights=None, **options), image(size)
    return make


def timm(name, size=64, **options):
    def make():
        import timm as library
        return library.create_model(name, pretrained=False, **options), image(size)
    return make


def language(name, config, inputs=words, **options):
    def make():
        import transformers
        settings = getattr(transformers, config)(**options)
        return getattr(transformers, name)(settings), inputs()
    return make


SMALL = dict(vocab_size=100, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
             num_attention_heads=4)


class Encoder(torch.nn.Module):
    """The encoder half of a sequence to sequence model."""

    def __init__(self, model):
        super().__init__()
        self.encoder = model.get_encoder()

    def forward(self, x):
        return self.encoder(x).last_hidden_state


def whisper():
    import transformers
    settings = transformers.WhisperConfig(
        vocab_size=100, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, num_mel_bins=16,
        max_source_positions=50, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=1)
    mel = torch.rand(1, 16, 100, generator=torch.Generator().manual_seed(1))
    return Encoder(transformers.WhisperModel(settings)), (mel,)


TOPOLOGIES = {
    "resnet18": vision("resnet18"),
    "mobilenet_v2": vision("mobilenet_v2"),
    "mobilenet_v3_small": vision("mobilenet_v3_small"),
    "squeezenet1_1": vision("squeezenet1_1"),
    "shufflenet_v2": vision("shufflenet_v2_x0_5"),
    "densenet121": vision("densenet121"),
    "googlenet": vision("googlenet", init_weights=False, aux_logits=False),
    "efficientnet_b0": vision("efficientnet_b0"),
    "regnet_y_400mf": vision("regnet_y_400mf"),
    "convnext_tiny": vision("convnext_tiny"),
    "swin_t": vision("swin_t"),
    "lraspp": lambda: (__import__("torchvision").models.segmentation.lraspp_mobilenet_v3_large(
        weights=None, weights_backbone=None), image()),
    "deit_tiny": timm("deit_tiny_patch16_224", img_size=64),
    "mixer": timm("mixer_s32_224", img_size=64),
    "ghostnet": timm("ghostnet_100"),
    "bert": language("BertModel", "BertConfig", **SMALL),
    "gpt2": language("GPT2LMHeadModel", "GPT2Config", vocab_size=100, n_embd=32, n_layer=2, n_head=4,
                     use_cache=False),
    "llama": language("LlamaForCausalLM", "LlamaConfig", use_cache=False, **SMALL),
    "distilbert": language("DistilBertModel", "DistilBertConfig", vocab_size=100, dim=32,
                           hidden_dim=64, n_layers=2, n_heads=4),
    "whisper_encoder": whisper,
}


def exported(name):
    torch.manual_seed(3)
    model, args = TOPOLOGIES[name]()
    return torch.export.export(model.eval(), args, strict=False), args


def results(module, args):
    torch.manual_seed(4)
    with torch.no_grad():
        return [x for x in tree_leaves(module(*args)) if isinstance(x, torch.Tensor)]


def random_support(seed):
    """Operators by kind or single nodes, a seeded choice."""
    rng = random.Random(seed)
    share, by_kind = rng.choice((0.5, 0.8, 0.95)), rng.random() < 0.6
    verdict = {}

    def supported(node):
        key = str(node.target) if by_kind else node.name
        return verdict.setdefault(key, rng.random() < share)
    return supported


def once_only(program, parted):
    """Every call node, under its own name, in one part; only constant expressions in more."""
    plan = parted.meta["cutset"]
    inside = [n.name for m in parted.children() if isinstance(m, torch.fx.GraphModule)
              for n in m.graph.nodes if n.op.startswith("call")]
    copied = [name for part in plan.parts for name in part.copies]
    calls = [n.name for n in program.module().graph.nodes
             if n.op.startswith("call") and n.name != "_guards_fn"]
    assert sorted(inside) == sorted(calls + copied)


@pytest.mark.parametrize("name", TOPOLOGIES if LONG else
                         ["resnet18", "mobilenet_v3_small", "bert", "llama"])
def test_topology(name):
    program, args = exported(name)
    want = results(program.module(), args)
    for seed in range(10 if LONG else 3):
        parted = cutset.torch.partition(program, supported=random_support(seed))
        plan = parted.meta["cutset"]
        assert plan.engines == plan.engines_bound == len(engines(parted)) > 0
        once_only(program, parted)
        same(want, results(parted, args), f"{name}, support {seed}", exact=True)
    whole = weight_bytes(program.module())
    for k, share in enumerate((2, 5, 12)):
        budget = whole // share
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cutset.OversizeWarning)
            parted = cutset.torch.partition(
                program, cpu_memory_budget=budget, memory_factor=1, oversize="keep",
                supported=random_support(100 + k) if k else None)
        plan = parted.meta["cutset"]
        kept = {n for nodes, _ in plan.oversized for n in nodes}
        for part in engines(parted):
            over = weight_bytes(part) > budget
            assert not over or kept & {n.name for n in part.graph.nodes}, f"{name}: over budget"
        assert plan.engines >= plan.engines_bound
        same(want, results(parted, args), f"{name}, budget {budget}", exact=True)
