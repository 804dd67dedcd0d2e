"""What the index of the search holds besides the words of a page: names, and what users type."""

import re

# what users call it, by where it stands
NN, FUNCTIONAL = (
    "reference/torch.nn.html#torch.nn",
    "reference/torch.nn.functional.html#torch.nn.functional",
)
PHRASES = {
    f"{NN}.BCELoss": "binary cross entropy",
    f"{NN}.BCEWithLogitsLoss": "binary cross entropy",
    f"{NN}.CrossEntropyLoss": "cross entropy",
    f"{NN}.Dropout": "dropout",
    f"{NN}.LSTM": "LSTM",
    f"{NN}.Module.load_state_dict": "load_state_dict",
    f"{NN}.Module.state_dict": "state_dict",
    f"{FUNCTIONAL}.binary_cross_entropy": "binary cross entropy",
    f"{FUNCTIONAL}.softmax": "softmax",
    "reference/torch.Tensor.html#torch.Tensor.view": "view",
    "reference/torch.html#torch.inference_mode": "inference mode evaluation",
    "reference/torch.optim.html": "optimizer weight decay",
    "reference/torch.optim.html#torch.optim.AdamW": "weight decay",
    "reference/torch.optim.lr_scheduler.html#torch.optim.lr_scheduler.CosineAnnealingLR": (
        "cosine annealing"
    ),
    "accelerators.html": "GPU TPU cuda accelerator device",
    "custom_rules.html": "custom autograd function operator",
    "derivatives.html": "double backward second derivative hessian jacobian",
    "tutorials/fine_tuning.html": "freeze layers transfer learning finetune pretrained",
    "reference/torch.html#torch.autocast": "mixed precision amp half precision",
    "reference/torch.html#torch.compile": "torch compile jit speed",
    "reference/torch.html#torch.load": "load model weights checkpoint pretrained",
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
    "reference/torch.utils.data.html#torch.utils.data.DataLoader": "data batches num_workers",
    "conventions.html": "differences unsupported limitations",
    "deploy.html": "deploy deployment serve serving production inference FastAPI ONNX TensorFlow",
    "distributed.html": "multi-GPU data parallel DDP FSDP",
    "ecosystem.html": "packages transformers timm lightning",
    "export.html": "export program StableHLO",
    "from_pytorch.html": "migrate port PyTorch GPU cuda",
    "performance.html": "slow speed memory recompile cache GPU",
    "random.html": "seed reproducible",
    "start.html": "install quick start",
    "wrong_gradients.html": "NaN gradient None zero inplace error debug",
}
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


def add_words(documents):
    """Tags, which count more than a title, and the single words of names such as `cross_entropy`.

    documents: the entries of the index, dictionaries that change.
    """
    for document in documents:
        location, title = document["location"], document["title"]
        tags = PHRASES.get(location, "").split()
        page, _, anchor = location.removeprefix("reference/").partition(".html#")
        if anchor == title and location.startswith("reference/"):
            name = title.removeprefix(f"{page}.")
            document["text"] += " " + " ".join(WORD.findall(name))
            if "." not in name:  # no member of a class
                tags.append(name)
        if tags:
            document["tags"] = tags
