"""What the index of the search holds besides the words of a page: names, and what users type."""

import re

# what users call it, by where it stands
NN, FUNCTIONAL = (
    "reference/torch.nn.html#torch.nn",
    "reference/torch.nn.functional.html#torch.nn.functional",
)
PARAMETRIZATIONS = "reference/torch.nn.utils.parametrizations.html#torch.nn.utils.parametrizations"
PHRASES = {
    f"{NN}.BCELoss": "binary",
    f"{NN}.BCEWithLogitsLoss": "binary",
    f"{NN}.BatchNorm2d": "batch norm",
    f"{NN}.CrossEntropyLoss": "cross entropy",
    f"{NN}.LayerNorm": "layer norm",
    f"{NN}.Dropout": "dropout",
    f"{NN}.LSTM": "LSTM",
    f"{NN}.Linear": "linear layer",
    f"{NN}.Module.load_state_dict": "load_state_dict",
    f"{NN}.Module.state_dict": "state_dict",
    f"{FUNCTIONAL}.binary_cross_entropy": "binary cross entropy",
    f"{FUNCTIONAL}.softmax": "softmax",
    "reference/torch.Tensor.html#torch.Tensor.view": "view",
    "reference/torch.html#torch.inference_mode": "inference mode evaluation",
    "reference/torch.optim.html": "optimizer weight decay",
    "reference/torch.optim.html#torch.optim.Adam": "Adam",
    "reference/torch.optim.html#torch.optim.AdamW": "weight decay",
    "reference/torch.optim.lr_scheduler.html#torch.optim.lr_scheduler.CosineAnnealingLR": (
        "cosine annealing"
    ),
    "accelerators.html": "GPU TPU cuda accelerator device",
    "custom_rules.html": "custom autograd function operator",
    "derivatives.html": "double second derivative hessian jacobian",
    "tutorials/fine_tuning.html": "freeze layers transfer learning finetune pretrained",
    "reference/torch.Tensor.html#torch.Tensor.detach": "stop gradient",
    "reference/torch.html#torch.bmm": "batch matrix multiply",
    "reference/torch.html#torch.masked_fill": "masked fill",
    "reference/torch.html#torch.matmul": "matrix multiply",
    "reference/torch.html#torch.autocast": "mixed precision amp half precision",
    "reference/torch.html#torch.compile": "torch compile speed",
    "reference/torch.jit.html": "torch jit",
    "reference/torch.jit.html#torch.jit.save": "torch jit save",
    "reference/torch.jit.html#torch.jit.load": "torch jit load",
    "reference/torch.onnx.html#torch.onnx.export": "torch onnx export",
    "reference/torch.html#torch.load": "load model weights checkpoint pretrained pickle",
    "reference/torch.html#torch.manual_seed": "random seed reproducible",
    "reference/torch.html#torch.save": "save model weights checkpoint",
    "reference/torch.amp.html#torch.amp.GradScaler": "loss scaling",
    "reference/torch.nn.utils.html#torch.nn.utils.clip_grad_norm_": "gradient clipping",
    "reference/torch.nn.utils.html#torch.nn.utils.clip_grad_value_": "gradient clipping",
    "reference/torch.nn.functional.html#torch.nn.functional.scaled_dot_product_attention": (
        "flash attention"
    ),
    "reference/torch.optim.lr_scheduler.html": "learning rate schedule warmup decay",
    "reference/torch.utils.checkpoint.html": "activation gradient checkpointing recompute memory",
    "reference/torch.autograd.html#torch.autograd.backward": "retain_graph create_graph",
    "reference/torch.utils.data.html#torch.utils.data.DataLoader": (
        "data batches num_workers collate_fn pin_memory"
    ),
    "compiled_steps.html": "retracing recompile gradient accumulation training step",
    "conventions.html": "differences unsupported limitations",
    "deploy.html": "deploy deployment serve serving production inference FastAPI ONNX",
    "deploy.html#quantization-weights-of-8-bits": "quantization int8 quantize",
    "distributed.html": "distributed multi-GPU data parallel DDP FSDP",
    "ecosystem.html": "packages transformers huggingface timm lightning",
    "export.html": "export program StableHLO",
    "from_jax.html": "JAX flax optax equinox grad",
    "from_pytorch.html": "migrate port PyTorch resume training",
    "from_pytorch.html#devices": "move to GPU cuda same device",
    "from_pytorch.html#the-prompt-and-notebooks": "jupyter notebook prompt",
    "from_pytorch.html#weights-and-checkpoints": "safetensors weights",
    "is_it_right.html": "is it right correct tests evidence",
    "looking_at_graphs.html": "graph visualization visualize draw plot",
    "performance.html": "slow speed memory recompile cache GPU",
    "performance.html#memory": "huge model out of memory",
    "random.html": "seed reproducible reproducibility",
    "reference/torch.autograd.forward_ad.html": "forward mode",
    "reference/torch.distributions.html": "normal distribution sample",
    "reference/torch.Tensor.html#torch.Tensor.backward": "backward gradient",
    "reference/torch.masked.html": "masked tensor",
    "reference/torch.nested.html": "nested tensor ragged",
    "reference/torch.nn.functional.html#torch.nn.functional.kl_div": "kl divergence",
    "reference/torch.nn.init.html": "weight initialization",
    "reference/torch.nn.utils.html": "gradient clipping",
    f"{PARAMETRIZATIONS}.weight_norm": "weight norm",
    f"{PARAMETRIZATIONS}.spectral_norm": "spectral norm",
    "reference/torch.utils.data.html#torch.utils.data.random_split": "random split",
    "reference/torch.utils.flop_counter.html": "flops",
    "start.html": "install quick start training loop",
    "tutorials/gan.html": "GAN generative adversarial",
    "tutorials/gaussian_process.html": "gaussian process",
    "tutorials/language_model.html": "language model GPT",
    "tutorials/maml.html": "meta learning MAML",
    "tutorials/per_sample_gradients.html": "per-sample gradients",
    "tutorials/reinforcement_learning.html": "reinforcement learning policy",
    "wrong_gradients.html#freed-graph": "backward graph second time retain_graph",
    "wrong_gradients.html": "NaN grad gradient None zero inplace error debug",
}
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


def add_words(documents):
    """Tags, which count more than a title, and the single words of names such as `cross_entropy`.

    Of names that begin with what is typed, the shortest comes first, and one in place last.

    documents: the entries of the index, dictionaries that change.
    """
    for document in documents:
        location, title = document["location"], document["title"]
        tags = [word for part in PHRASES.get(location, "").split() for word in parts(part)]
        page, _, anchor = location.removeprefix("reference/").partition(".html")
        if location.startswith("reference/") and not anchor:
            tags += page.split(".")
            document["boost"] = document.get("boost", 1) * 1.5
        elif anchor == f"#{title}" and location.startswith("reference/"):
            name = title.removeprefix(f"{page}.")
            document["text"] += " " + " ".join(WORD.findall(name))
            counts = weight(name) * (2 if location in PHRASES else 1)
            document["boost"] = document.get("boost", 1) * counts
            if "." not in name:  # no member of a class
                tags += [*page.split("."), name]
        if tags:
            document["tags"] = tags


def parts(word: str) -> list[str]:
    """The words that the search makes of one that is typed, `per` and `sample` of `per-sample`."""
    return word.split("-")


def weight(name: str) -> float:
    """How much an entry counts beside those of other names."""
    counts = min(max((10 / len(name)) ** 1.5, 0.3), 2.8)
    if name.endswith("_") and not name.endswith("grad_norm_"):
        counts *= 0.3
    if name[-1].isdigit():  # `relu6` stands behind `relu`
        counts *= 0.6
    return counts * (0.5 if "." in name else 1)
