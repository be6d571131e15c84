"""The Python environment can do what the tests and comparisons ask of it: Hugging Face's MoE models, FSDP2 over Gloo, and the
packages that read and write what the trainer does."""

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.fsdp import fully_shard


def moe_models_give_logits():
    import transformers  # here, because the ranks import this file too and do without

    small = dict(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2,
                 num_experts_per_tok=2)
    tokens = torch.arange(8)[None]
    for family, extra in (("Mixtral", dict(num_local_experts=4)), ("Qwen3Moe", dict(num_experts=4, moe_intermediate_size=16)),
                          ("Olmoe", dict(num_experts=4))):
        config = getattr(transformers, family + "Config")(**small, **extra)
        logits = getattr(transformers, family + "ForCausalLM")(config)(tokens).logits
        assert logits.shape == (1, 8, 64) and logits.isfinite().all(), family


def packages_are_those_of_the_list():
    import moto.server  # noqa: F401
    import peft
    import streaming
    import tensorboard

    assert (streaming.__version__, peft.__version__, tensorboard.version.VERSION) == ("0.13.0", "0.21.2", "2.21.0")


def rank_main(rank, ranks, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 1))
    whole = [p.detach().clone().requires_grad_() for p in model.parameters()]
    fully_shard(model)
    x = torch.arange(16.0).view(2, 8) + rank
    model(x).sum().backward()
    # The gradient of a sharded model is the mean over the ranks.
    everything = torch.cat([torch.arange(16.0).view(2, 8) + r for r in range(ranks)])
    torch.nn.functional.linear(torch.nn.functional.linear(everything, whole[0], whole[1]), whole[2], whole[3]).sum().backward()
    for sharded, reference in zip(model.parameters(), whole):
        torch.testing.assert_close(sharded.grad.full_tensor() * ranks, reference.grad)
    dist.destroy_process_group()
    os._exit(0)  # all is checked; on a busy machine PyTorch's own threads may still run when the interpreter unloads them, and abort


if __name__ == "__main__":
    assert torch.__version__.startswith("2.11.0"), torch.__version__
    torch.set_num_threads(1)
    moe_models_give_logits()
    packages_are_those_of_the_list()
    store = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"windtunnel-gloo-{os.getpid()}")
    try:
        mp.spawn(rank_main, (2, store), nprocs=2)
    finally:
        if os.path.exists(store):
            os.unlink(store)
