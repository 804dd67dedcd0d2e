"""Packages for training, adapting and saving models: peft, accelerate, safetensors."""

import tempfile
from pathlib import Path

from harness import as_array, fill, integers, named, normal, program, state_of, train

VOCABULARY = 64
TEXT = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
PROJECTIONS = ["q_proj", "v_proj"]
ADAPTERS = {
    "LoRA": ("LoraConfig", {"r": 4, "lora_alpha": 8, "target_modules": PROJECTIONS}),
    "rank-stabilized LoRA": (
        "LoraConfig",
        # with the usual alpha of 8 the scores of attention are large: they magnify rounding in
        # PyTorch itself, to 3e-4 of what the merged model computes
        {
            "r": 4,
            "lora_alpha": 2,
            "target_modules": PROJECTIONS,
            "use_rslora": True,
            "bias": "all",
        },
    ),
    "DoRA": ("LoraConfig", {"r": 4, "target_modules": PROJECTIONS, "use_dora": True}),
    "LoHa": ("LoHaConfig", {"r": 4, "target_modules": PROJECTIONS}),
    "LoKr": ("LoKrConfig", {"r": 4, "target_modules": PROJECTIONS}),
    "OFT": ("OFTConfig", {"oft_block_size": 4, "target_modules": PROJECTIONS}),
    "BOFT": ("BOFTConfig", {"boft_block_size": 4, "target_modules": PROJECTIONS}),
    "VeRA": ("VeraConfig", {"r": 4, "target_modules": PROJECTIONS}),
    "HRA": ("HRAConfig", {"r": 4, "target_modules": PROJECTIONS}),
    "IA3": (
        "IA3Config",
        {"target_modules": [*PROJECTIONS, "down_proj"], "feedforward_modules": ["down_proj"]},
    ),
    "LayerNorm tuning": ("LNTuningConfig", {"target_modules": ["input_layernorm"]}),
    "prefix tuning": ("PrefixTuningConfig", {"num_virtual_tokens": 3}),
    "prompt tuning": ("PromptTuningConfig", {"num_virtual_tokens": 3}),
    "p-tuning": ("PromptEncoderConfig", {"num_virtual_tokens": 3, "encoder_hidden_size": 16}),
}
COMPILED = ("LoRA", "IA3")


def language_model():
    import transformers

    config = transformers.LlamaConfig(**TEXT, num_key_value_heads=4)
    return fill(transformers.LlamaForCausalLM(config)).eval()


def adapter_program(class_name, options):
    """Train an adapter, save and load it, and merge it into the model where it can be."""

    def run():
        import peft

        config = getattr(peft, class_name)(task_type="CAUSAL_LM", **options)
        model = fill(
            peft.get_peft_model(language_model(), config),
            buffers=("vera_A.default", "vera_B.default"),
        )
        model.eval()
        tokens = integers(VOCABULARY, 2, 8, low=4)

        def loss_of(model):
            outputs = model(input_ids=tokens, labels=tokens)
            return outputs.loss, {"logits": outputs.logits}

        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        results = train(model, loss_of, parameters=trained)
        results["counts"] = as_array([*model.get_nb_trainable_parameters()])
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            base = language_model()
            if "vera" in class_name.lower():
                return results
            loaded = peft.PeftModel.from_pretrained(base, folder).eval()
        results |= named(loss_of(loaded), "loaded")
        if hasattr(loaded, "merge_and_unload") and class_name not in ("LNTuningConfig",):
            merged = model.merge_and_unload() if not config.is_prompt_learning else model
            results |= named(loss_of(merged), "merged")
        return results

    return run


def network():
    import torch
    from torch import nn

    torch.manual_seed(0)
    return fill(nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.LayerNorm(16), nn.Linear(16, 3)))


def loader():
    import torch

    data = torch.utils.data.TensorDataset(normal(24, 6), integers(3, 24, name="labels"))
    return torch.utils.data.DataLoader(data, batch_size=4)


def accelerate_program(precision, accumulation):
    """The loop of accelerate's documentation, with its state saved, changed and loaded."""

    def run():
        import accelerate
        import torch
        from accelerate.state import AcceleratorState, GradientState

        AcceleratorState._reset_state(True)
        GradientState._reset_state()
        accelerator = accelerate.Accelerator(
            cpu=True, mixed_precision=precision, gradient_accumulation_steps=accumulation
        )
        model = network()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, eps=1e-3)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.9)
        model, optimizer, batches, scheduler = accelerator.prepare(
            model, optimizer, loader(), scheduler
        )
        losses = []

        def epoch():
            for inputs, labels in batches:
                with accelerator.accumulate(model):
                    loss = torch.nn.functional.cross_entropy(model(inputs).float(), labels)
                    accelerator.backward(loss)
                    if accelerator.sync_gradients:
                        accelerator.clip_grad_norm_(model.parameters(), 1.0)
                    optimizer.step()
                    scheduler.step()
                    optimizer.zero_grad()
                losses.append(loss.item())

        epoch()
        with tempfile.TemporaryDirectory() as folder:
            accelerator.save_state(folder)
            epoch()
            accelerator.load_state(folder)
        results = state_of(accelerator.unwrap_model(model))
        results = {name: as_array(value) for name, value in results.items()}
        results["rate"] = scheduler.get_last_lr()
        epoch()
        gathered = accelerator.gather_for_metrics(model(normal(4, 6, name="test")))
        return results | {"losses": losses, "gathered": gathered}

    return run


@program("accelerate", "empty weights")
def empty_weights():
    """A model is made without memory, and then filled from a file."""
    import accelerate
    import torch

    model = network()
    with tempfile.TemporaryDirectory() as folder:
        accelerate.Accelerator(cpu=True).save_model(model, folder)
        with accelerate.init_empty_weights():
            empty = torch.nn.Sequential(
                torch.nn.Linear(6, 16),
                torch.nn.Tanh(),
                torch.nn.LayerNorm(16),
                torch.nn.Linear(16, 3),
            )
        is_meta = [parameter.is_meta for parameter in empty.parameters()]
        loaded = accelerate.load_checkpoint_and_dispatch(empty, folder, device_map={"": "cpu"})
    return {"outputs": loaded(normal(4, 6)), "is_meta": is_meta}


@program("safetensors", "files")
def files():
    """Tensors of several types, and a model with shared weights, go to files and back."""
    import torch
    from safetensors import safe_open
    from safetensors.torch import load, load_file, load_model, save, save_file, save_model

    tensors = {
        "float": normal(3, 4),
        "half": normal(5).half(),
        "bfloat": normal(2, 3).bfloat16(),
        "integer": integers(100, 7),
        "bytes": integers(256, 3, 2).to(torch.uint8),
        "flags": normal(6) > 0,
        "transposed": normal(4, 5, name="transposed").t().contiguous(),
        "empty": torch.zeros(0, 3),
    }
    results = {f"bytes.{k}": v for k, v in load(save(tensors)).items()}
    model = network()
    model[0].bias = torch.nn.Parameter(model[2].bias.detach().clone())
    model[2].bias = model[0].bias
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "tensors.safetensors"))
        save_file(tensors, path, metadata={"format": "pt"})
        results |= {f"file.{name}": value for name, value in load_file(path).items()}
        with safe_open(path, framework="pt") as opened:
            results["slice"] = opened.get_slice("float")[1:, :2]
        save_model(model, path)
        other = network()
        other[2].bias = other[0].bias
        load_model(other, path)
    return results | {"outputs": other(normal(4, 6)), "expected": model(normal(4, 6))}


def register():
    for name, (class_name, options) in ADAPTERS.items():
        run = adapter_program(class_name, options)
        program("peft", name, compiled=name in COMPILED)(run)
    program("accelerate", "loop")(accelerate_program("no", 1))
    program("accelerate", "accumulation")(accelerate_program("no", 3))
    program("accelerate", "mixed precision", tolerance=2e-2)(accelerate_program("bf16", 1))


register()
