"""Networks, schedulers and pipelines of diffusers, from random weights."""

import tempfile

from harness import as_array, fill, integers, named, normal, program, train

UNET = {
    "sample_size": 8,
    "block_out_channels": (8, 16),
    "layers_per_block": 1,
    "norm_num_groups": 4,
}
CONDITIONAL = {
    **UNET,
    "cross_attention_dim": 16,
    "attention_head_dim": 4,
    "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
}
VAE = {
    "block_out_channels": (8, 16),
    "down_block_types": ("DownEncoderBlock2D",) * 2,
    "up_block_types": ("UpDecoderBlock2D",) * 2,
    "latent_channels": 4,
    "norm_num_groups": 4,
    "sample_size": 16,
}
HEADS = {"num_attention_heads": 2, "attention_head_dim": 8, "num_layers": 1}


def sample(channels=4, size=8, name="sample"):
    return normal(2, channels, size, size, name=name)


def steps():
    return integers(1000, 2, name="timesteps")


def text(length=5, width=16):
    return normal(2, length, width, name="text")


def flux_inputs():
    import torch

    return {
        "hidden_states": normal(2, 16, 8),
        "encoder_hidden_states": text(4, 12),
        "pooled_projections": normal(2, 10, name="pooled"),
        "timestep": torch.tensor([0.2, 0.7]),
        "img_ids": integers(4, 16, 3).float(),
        "txt_ids": integers(1, 4, 3).float(),
    }


# name: the class, its configuration, what it is called with
NETWORKS = {
    "UNet2DModel": (
        {
            **UNET,
            "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
            "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
            "attention_head_dim": 4,
        },
        lambda: {"sample": sample(3), "timestep": steps()},
    ),
    "UNet2DConditionModel": (
        CONDITIONAL,
        lambda: {"sample": sample(), "timestep": steps(), "encoder_hidden_states": text()},
    ),
    "UNet1DModel": (
        {
            "sample_size": 16,
            "block_out_channels": (32, 64),
            "down_block_types": ("DownBlock1DNoSkip", "AttnDownBlock1D"),
            "up_block_types": ("AttnUpBlock1D", "UpBlock1DNoSkip"),
            "extra_in_channels": 64,
            "layers_per_block": 1,
        },
        lambda: {"sample": normal(2, 2, 16), "timestep": steps()},
    ),
    "AutoencoderKL": (VAE, lambda: {"sample": sample(3, 16)}),
    "AutoencoderTiny": (
        {
            "encoder_block_out_channels": (8, 8),
            "decoder_block_out_channels": (8, 8),
            "num_encoder_blocks": (1, 1),
            "num_decoder_blocks": (1, 1),
        },
        lambda: {"sample": sample(3, 16)},
    ),
    "VQModel": (
        {
            "block_out_channels": (8, 16),
            "down_block_types": ("DownEncoderBlock2D",) * 2,
            "up_block_types": ("UpDecoderBlock2D",) * 2,
            "norm_num_groups": 4,
            "num_vq_embeddings": 16,
        },
        lambda: {"sample": sample(3, 16)},
    ),
    "DiTTransformer2DModel": (
        {**HEADS, "sample_size": 8, "in_channels": 4, "out_channels": 4, "norm_num_groups": 4},
        lambda: {
            "hidden_states": sample(),
            "timestep": steps(),
            "class_labels": integers(9, 2, name="classes"),
        },
    ),
    "SD3Transformer2DModel": (
        {
            **HEADS,
            "sample_size": 8,
            "in_channels": 4,
            "out_channels": 4,
            "caption_projection_dim": 16,
            "joint_attention_dim": 16,
            "pooled_projection_dim": 10,
            "pos_embed_max_size": 8,
        },
        lambda: {
            "hidden_states": sample(),
            "timestep": steps(),
            "encoder_hidden_states": text(),
            "pooled_projections": normal(2, 10, name="pooled"),
        },
    ),
    "FluxTransformer2DModel": (
        {
            **HEADS,
            "num_single_layers": 1,
            "in_channels": 8,
            "joint_attention_dim": 12,
            "pooled_projection_dim": 10,
            "axes_dims_rope": (2, 2, 4),
        },
        flux_inputs,
    ),
    "PixArtTransformer2DModel": (
        {
            **HEADS,
            "sample_size": 8,
            "in_channels": 4,
            "out_channels": 8,
            "caption_channels": 12,
            "cross_attention_dim": 16,
            "norm_num_groups": 4,
            "use_additional_conditions": False,
        },
        lambda: {
            "hidden_states": sample(),
            "timestep": steps(),
            "encoder_hidden_states": text(5, 12),
            "added_cond_kwargs": {"resolution": None, "aspect_ratio": None},
        },
    ),
    "ControlNetModel": (
        {
            "block_out_channels": (8, 16),
            "layers_per_block": 1,
            "norm_num_groups": 4,
            "cross_attention_dim": 16,
            "attention_head_dim": 4,
            "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
            "conditioning_embedding_out_channels": (8, 16),
        },
        lambda: {
            "sample": sample(),
            "timestep": steps(),
            "encoder_hidden_states": text(),
            "controlnet_cond": sample(3, 16, "condition"),
        },
    ),
}
SCHEDULERS = (
    "DDIMScheduler",
    "DDPMScheduler",
    "DEISMultistepScheduler",
    "DPMSolverMultistepScheduler",
    "DPMSolverSinglestepScheduler",
    "EulerAncestralDiscreteScheduler",
    "EulerDiscreteScheduler",
    "FlowMatchEulerDiscreteScheduler",
    "HeunDiscreteScheduler",
    "KDPM2DiscreteScheduler",
    "LCMScheduler",
    "LMSDiscreteScheduler",
    "PNDMScheduler",
    "UniPCMultistepScheduler",
)
COMPILED = ("UNet2DModel", "UNet2DConditionModel", "AutoencoderKL")
# encodes times by sines of angles up to 7000: their rounding in float32 changes the trained
# parameters by 3.7 % in PyTorch itself
DOUBLE = ("UNet1DModel",)


def network_program(name, options, inputs_of):
    """Train, save and load."""

    def run():
        import diffusers

        model = fill(getattr(diffusers, name)(**options)).eval()
        inputs = inputs_of()

        def loss_of(model):
            outputs = named(model(**inputs, return_dict=False), "outputs")
            return sum(output.square().mean() for output in outputs.values()), outputs

        results = train(model, loss_of)
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            loaded = type(model).from_pretrained(folder, low_cpu_mem_usage=False).eval()
        return results | named(loss_of(loaded)[1], "loaded")

    return run


def scheduler_program(name):
    """Six steps of a scheduler, whose own noise is zero, from a fixed model's outputs."""

    def run():
        import diffusers
        import torch

        scheduler = getattr(diffusers, name)()
        scheduler.set_timesteps(6)
        latents = normal(2, 3, 4, 4) * float(getattr(scheduler, "init_noise_sigma", 1.0))
        results = {"timesteps": scheduler.timesteps}
        drawn, torch.randn = torch.randn, without_noise
        try:
            for index, timestep in enumerate(scheduler.timesteps):
                scaled = latents
                if hasattr(scheduler, "scale_model_input"):
                    scaled = scheduler.scale_model_input(latents, timestep)
                output = torch.tanh(scaled + 0.1 * normal(3, 1, 1, name=f"step {index}"))
                latents = scheduler.step(output, timestep, latents).prev_sample
                results[f"latents.{index}"] = latents
        finally:
            torch.randn = drawn
        if hasattr(scheduler, "add_noise"):
            noise = normal(2, 3, 4, 4, name="noise")
            results["noisy"] = scheduler.add_noise(latents, noise, scheduler.timesteps[1:3])
        return results

    return run


def without_noise(*shape, **options):
    """Zeros in the place of `torch.randn`, whose numbers differ between the frameworks."""
    import torch

    options.pop("generator", None)
    return torch.zeros(*shape, **options)


@program("diffusers", "pipeline")
def pipeline():
    """An unconditional pipeline with DDIM, saved, loaded and run again."""
    import diffusers

    network = fill(
        diffusers.UNet2DModel(
            **UNET,
            down_block_types=("DownBlock2D", "AttnDownBlock2D"),
            up_block_types=("AttnUpBlock2D", "UpBlock2D"),
            attention_head_dim=4,
        )
    ).eval()
    created = diffusers.DDIMPipeline(network, diffusers.DDIMScheduler())
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        created.save_pretrained(folder)
        loaded = diffusers.DDIMPipeline.from_pretrained(folder)
    for name, one in (("created", created), ("loaded", loaded)):
        one.set_progress_bar_config(disable=True)
        one.scheduler.set_timesteps(3)
        latents = normal(2, 3, 8, 8)
        for timestep in one.scheduler.timesteps:
            output = one.unet(latents, timestep).sample
            latents = one.scheduler.step(output, timestep, latents).prev_sample.detach()
        results[f"{name}.latents"] = as_array(latents)
    return results


@program("diffusers", "text-to-image pipeline")
def text_to_image():
    """Stable Diffusion's pipeline from small random networks, with given latents and prompt."""
    import diffusers

    network = fill(diffusers.UNet2DConditionModel(**CONDITIONAL)).eval()
    autoencoder = fill(diffusers.AutoencoderKL(**VAE)).eval()
    created = diffusers.StableDiffusionPipeline(
        vae=autoencoder,
        text_encoder=None,
        tokenizer=None,
        unet=network,
        scheduler=diffusers.DDIMScheduler(),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )
    created.set_progress_bar_config(disable=True)
    outputs = created(
        prompt_embeds=text(),
        negative_prompt_embeds=normal(2, 5, 16, name="negative"),
        latents=normal(2, 4, 8, 8),
        num_inference_steps=3,
        guidance_scale=3.0,
        output_type="np",
        height=16,
        width=16,
    )
    return {"images": outputs.images}


def register():
    for name, (options, inputs_of) in NETWORKS.items():
        run = network_program(name, options, inputs_of)
        dtype = "float64" if name in DOUBLE else "float32"
        program("diffusers", name, compiled=name in COMPILED, dtype=dtype)(run)
    for name in SCHEDULERS:
        program("diffusers", name)(scheduler_program(name))


register()
