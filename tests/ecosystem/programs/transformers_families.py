"""Families of models in transformers, from small configurations: training, generation, saving.

A family is one line of a table: what its configuration has other than the small sizes below.
"""

import tempfile

from harness import as_array, fill, integers, named, normal, program, train

VOCABULARY = 64
SMALL = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "attn_implementation": "sdpa",
}
EXPERTS = {"num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4}
EXPERTS |= {"num_experts_per_tok": 2, "moe_intermediate_size": 32}
WITHOUT_SDPA = {"attn_implementation": "eager"}
LATENT = {"q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8}
LATENT |= {"v_head_dim": 8, "num_key_value_heads": 4, "n_group": 1, "topk_group": 1}

CAUSAL = {
    "bamba": {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 8, "attn_layer_indices": [1]},
    "biogpt": {},
    "bloom": {"n_layer": 2, "n_head": 4},
    "codegen": {"n_layer": 2, "n_head": 4, "rotary_dim": 4, "n_positions": 64, "n_ctx": 64},
    "cohere": {},
    "ctrl": {"n_layer": 2, "n_head": 4, "dff": 64, "n_positions": 64},
    "deepseek_v2": {**EXPERTS, **LATENT, "first_k_dense_replace": 1},
    "deepseek_v3": {**EXPERTS, **LATENT, "first_k_dense_replace": 1},
    "exaone4": {"sliding_window": 4},
    "ernie4_5": {"head_dim": 8},
    "falcon": {},
    "falcon_mamba": {"state_size": 8, "time_step_rank": 4},
    "gemma": {"head_dim": 8},
    "gemma2": {"head_dim": 8, "sliding_window": 4},
    "gemma3_text": {"head_dim": 8, "sliding_window": 4},
    "glm": {"head_dim": 8},
    "glm4": {"head_dim": 8},
    "gpt2": {},
    "gpt_bigcode": {},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]], "window_size": 4},
    "gpt_neox": {},
    "gpt_oss": {**EXPERTS, **WITHOUT_SDPA, "head_dim": 8, "sliding_window": 4},
    "gptj": {"rotary_dim": 4, "n_positions": 64},
    "granite": {},
    "granitemoe": EXPERTS,
    "helium": {"head_dim": 8},
    "jamba": {
        **EXPERTS,
        "mamba_d_state": 8,
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
        "use_mamba_kernels": False,
    },
    "jetmoe": {**EXPERTS, "kv_channels": 8},
    "lfm2": {"layer_types": ["conv", "full_attention"], "block_multiple_of": 8},
    "llama": {},
    "mamba": {"state_size": 8, "time_step_rank": 4},
    "mamba2": {"state_size": 8, "num_heads": 8, "head_dim": 8, "n_groups": 2, "chunk_size": 4},
    "minimax": {**EXPERTS, "head_dim": 8, "block_size": 4},
    "mistral": {"sliding_window": 4},
    "mixtral": EXPERTS,
    "mpt": {"d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 64},
    "nemotron": {},
    "olmo": {},
    "olmo2": {},
    "olmoe": EXPERTS,
    "opt": {"ffn_dim": 64, "word_embed_proj_dim": 32},
    "persimmon": {},
    "phi": {},
    "phi3": {},
    "qwen2": {},
    "qwen2_moe": {**EXPERTS, "shared_expert_intermediate_size": 32},
    "qwen3": {"head_dim": 8},
    "qwen3_moe": {**EXPERTS, "head_dim": 8},
    "recurrent_gemma": {
        "block_types": ["recurrent", "attention"],
        "lru_width": 32,
        "attention_window_size": 8,
    },
    "smollm3": {},
    "stablelm": {},
    "starcoder2": {},
    "xglm": {"d_model": 32, "ffn_dim": 64, "num_layers": 2, "attention_heads": 4},
    "xlnet": {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64},
    "zamba2": {
        "mamba_d_state": 8,
        "n_mamba_heads": 4,
        "chunk_size": 4,
        "mamba_ngroups": 1,
        "adapter_rank": 8,
        "num_mem_blocks": 1,
        "layers_block_type": ["mamba", "hybrid"],
    },
}
MASKED = {
    "albert": {"embedding_size": 16},
    "bert": {},
    "big_bird": {"attention_type": "original_full"},
    "camembert": {},
    "convbert": {"embedding_size": 16},
    "deberta": {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
    "electra": {"embedding_size": 16},
    "esm": {"mask_token_id": 3, "position_embedding_type": "rotary"},
    "fnet": {},
    "funnel": {"block_sizes": [1, 1], "d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 64},
    "ibert": {},
    "longformer": {"attention_window": [4, 4]},
    "megatron-bert": {},
    "mobilebert": {"embedding_size": 16, "true_hidden_size": 32, "intra_bottleneck_size": 32},
    "modernbert": {"local_attention": 4},
    "mpnet": {},
    "mra": {},
    "nystromformer": {"segment_means_seq_len": 8, "num_landmarks": 2},
    "perceiver": {
        "max_position_embeddings": 8,
        "num_latents": 8,
        "d_latents": 32,
        "d_model": 32,
        "num_blocks": 1,
        "num_self_attends_per_block": 2,
        "num_self_attention_heads": 4,
        "num_cross_attention_heads": 4,
    },
    "reformer": {
        "attn_layers": ["local", "local"],
        "axial_pos_embds": False,
        "local_attn_chunk_length": 4,
        "feed_forward_size": 64,
        "attention_head_size": 8,
        "is_decoder": False,
        "hidden_dropout_prob": 0.0,
        "local_attention_probs_dropout_prob": 0.0,
    },
    "rembert": {"input_embedding_size": 16, "output_embedding_size": 32},
    "roberta": {},
    "roformer": {"embedding_size": 32},
    "squeezebert": {"embedding_size": 32},
    "xlm": {"emb_dim": 32, "n_layers": 2, "n_heads": 4},
    "xlm-roberta": {},
    "yoso": {"use_expectation": True},
}
SEQUENCES = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 64}
SEQUENCES |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "decoder_ffn_dim": 64}
SEQUENCES |= {"decoder_start_token_id": 1, "forced_eos_token_id": None}
T5 = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_decoder_layers": 2}
T5 |= {"num_heads": 4, "decoder_start_token_id": 0, "relative_attention_num_buckets": 8}
SEQUENCE_TO_SEQUENCE = {
    "bart": SEQUENCES,
    "bigbird_pegasus": {**SEQUENCES, "attention_type": "original_full"},
    "blenderbot": SEQUENCES,
    "blenderbot-small": SEQUENCES,
    "fsmt": {
        **SEQUENCES,
        "src_vocab_size": VOCABULARY,
        "tgt_vocab_size": VOCABULARY,
        "langs": ["en", "de"],
    },
    "led": {
        **SEQUENCES,
        "attention_window": [4, 4],
        "max_encoder_position_embeddings": 64,
        "max_decoder_position_embeddings": 64,
    },
    "longt5": {**T5, "local_radius": 3},
    "m2m_100": SEQUENCES,
    "marian": {**SEQUENCES, "decoder_vocab_size": VOCABULARY},
    "mbart": SEQUENCES,
    "mt5": T5,
    "pegasus": SEQUENCES,
    "pegasus_x": {**SEQUENCES, "block_size": 4, "num_global_tokens": 4},
    "plbart": SEQUENCES,
    "prophetnet": {
        "num_encoder_layers": 2,
        "num_decoder_layers": 2,
        "encoder_ffn_dim": 64,
        "decoder_ffn_dim": 64,
        "num_encoder_attention_heads": 4,
        "num_decoder_attention_heads": 4,
        "decoder_start_token_id": 1,
    },
    "switch_transformers": {
        **T5,
        "num_experts": 4,
        "expert_capacity": 8,
        "num_sparse_encoder_layers": 1,
        "num_sparse_decoder_layers": 1,
    },
    "t5": T5,
    "umt5": T5,
}
IMAGES = {"image_size": 32, "patch_size": 8, "num_labels": 5}
STAGES = {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1], "embedding_size": 8}
VISION = {
    "beit": IMAGES,
    "bit": {**STAGES, "num_groups": 4},
    "convnext": STAGES,
    "convnextv2": STAGES,
    "cvt": {"embed_dim": [8, 16, 32], "num_heads": [1, 2, 4], "depth": [1, 2, 3]},
    "deit": {**IMAGES, "architectures": ["DeiTForImageClassification"]},
    "dinov2": IMAGES,
    "focalnet": {
        **IMAGES,
        "patch_size": 4,
        "embed_dim": 8,
        "depths": [1, 1],
        "focal_levels": [2, 2],
        "focal_windows": [3, 3],
        "hidden_sizes": [8, 16],
    },
    "hiera": {
        "image_size": [32, 32],
        "embed_dim": 8,
        "depths": [1, 1, 1, 1],
        "num_heads": [1, 2, 2, 4],
        "patch_stride": [4, 4],
    },
    "imagegpt": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
    "levit": {
        "architectures": ["LevitForImageClassification"],
        "image_size": 128,  # the last stage has four places, so that its variances are not near 0
        "hidden_sizes": [16, 32, 48],
        "num_attention_heads": [2, 2, 2],
        "depths": [1, 1, 1],
        "key_dim": [8, 8, 8],
        "down_ops": [["Subsample", 8, 2, 2, 2, 2], ["Subsample", 8, 4, 2, 2, 2]],
    },
    "mobilenet_v2": {"depth_multiplier": 0.25, "image_size": 32},
    "mobilevit": {
        "image_size": 64,
        "hidden_sizes": [16, 24, 32],
        "neck_hidden_sizes": [8, 8, 16, 16, 24, 24, 32],
    },
    "poolformer": {**STAGES, "num_encoder_blocks": 4},
    "pvt": {
        "image_size": 32,
        "hidden_sizes": [8, 16, 16, 32],
        "depths": [1, 1, 1, 1],
        "num_attention_heads": [1, 2, 2, 4],
    },
    "regnet": {**STAGES, "groups_width": 8},
    "resnet": STAGES,
    "segformer": {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1]},
    "swiftformer": {"embed_dims": [8, 16, 16, 32], "depths": [1, 1, 1, 1]},
    "swin": {
        "image_size": 32,
        "patch_size": 4,
        "embed_dim": 8,
        "depths": [1, 1],
        "num_heads": [2, 2],
        "window_size": 4,
    },
    "swinv2": {
        "image_size": 32,
        "patch_size": 4,
        "embed_dim": 8,
        "depths": [1, 1],
        "num_heads": [2, 2],
        "window_size": 4,
    },
    "vit": IMAGES,
    "vit_msn": IMAGES,
}
TRAINED = ("bit", "convnext", "convnextv2", "levit", "mobilenet_v2", "reformer", "regnet")
TRAINED += ("resnet",)
# whose differences by rounding grow a hundredfold and more in steps of the usual size
LEARNING_RATES = {"levit": 1e-3, "zamba2": 1e-3}
# what a family counts or limits in another way than the small sizes name
LAYERS_ELSEWHERE = {
    "bit": ("num_hidden_layers",),
    "convnext": ("num_hidden_layers",),
    "convnextv2": ("num_hidden_layers",),
    "funnel": ("num_hidden_layers",),
    "prophetnet": ("num_hidden_layers",),
    "regnet": ("num_hidden_layers",),
    "segformer": ("num_attention_heads",),
    "xlnet": ("max_position_embeddings",),
}
COMPILED = ("bert", "convnext", "gpt2", "llama", "mamba", "mixtral", "opt", "qwen3", "t5", "vit")


def model_of(kind, family, options):
    """A model with the head of its kind, filled, without dropout."""
    import transformers

    names = LAYERS_ELSEWHERE.get(family, ())
    options = {name: SMALL[name] for name in SMALL if name not in names} | options
    implementation = options.pop("attn_implementation")
    config = transformers.AutoConfig.for_model(family, **options)
    automatic = getattr(transformers, f"AutoModelFor{kind}")
    try:
        model = automatic.from_config(config, attn_implementation=implementation)
    except (ValueError, ImportError):
        model = automatic.from_config(config, attn_implementation="eager")
    return fill(model).eval()


def saved_and_loaded(model, outputs_of):
    """The outputs of a model that is saved and loaded."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        loaded = type(model).from_pretrained(folder).eval()
    return named(outputs_of(loaded), "loaded")


def generated(model, **inputs):
    """What a model generates: greedily with a cache and without, and by beams."""
    options = {"max_new_tokens": 6, "do_sample": False}
    results = {
        "greedy": model.generate(**inputs, **options),
        "uncached": model.generate(**inputs, use_cache=False, **options),
        "beams": model.generate(**inputs, num_beams=3, **options),
    }
    return {f"generated.{name}": as_array(tokens) for name, tokens in results.items()}


def without_cache(outputs):
    """The tensors of a model's outputs; the cache holds what later calls change."""
    names = ("loss", "logits", "hidden_states", "last_hidden_state", "reconstruction")
    return {name: outputs[name] for name in names if outputs.get(name) is not None}


class Outputs(dict):
    """Outputs by name, with the loss as an attribute too."""

    @property
    def loss(self):
        return self["loss"]


def text_program(kind, family, options, generates):
    """Train on tokens, generate, save and load."""

    def run():
        import torch

        model = model_of(kind, family, options).train(family in TRAINED)
        tokens = integers(VOCABULARY, 2, 8, low=4)
        mask = torch.ones_like(tokens)
        labels = integers(VOCABULARY, 2, 8, low=4, name="labels") if kind != "CausalLM" else tokens

        def outputs_of(model):
            takes_mask = family not in ("fnet", "perceiver", "reformer")
            inputs = {"attention_mask": mask} if takes_mask else {}
            return Outputs(without_cache(model(input_ids=tokens, labels=labels, **inputs)))

        results = train(model, outputs_of, learning_rate=LEARNING_RATES.get(family, 1e-2))
        if generates:
            results |= generated(model, inputs=tokens, attention_mask=mask)
        return results | saved_and_loaded(model, outputs_of)

    return run


def image_program(family, options):
    """Train on images, save and load."""

    def run():
        model = model_of("ImageClassification", family, options | {"num_labels": 5})
        model.train(family in TRAINED)
        size = options.get("image_size", 32)
        size = size if isinstance(size, int) else size[0]
        images, labels = normal(2, 3, size, size), integers(5, 2, name="labels")
        inputs = {"pixel_values": images}
        if family == "imagegpt":
            inputs = {"input_ids": integers(VOCABULARY, 2, 8)}

        def outputs_of(model):
            return Outputs(without_cache(model(**inputs, labels=labels)))

        results = train(model, outputs_of, learning_rate=LEARNING_RATES.get(family, 1e-2))
        return results | saved_and_loaded(model, outputs_of)

    return run


def register():
    without_generation = ("xlnet", "ctrl")
    kinds = (("CausalLM", CAUSAL), ("MaskedLM", MASKED), ("Seq2SeqLM", SEQUENCE_TO_SEQUENCE))
    for kind, families in kinds:
        for family, options in families.items():
            generates = kind != "MaskedLM" and family not in without_generation
            run = text_program(kind, family, options, generates)
            program("transformers", family, compiled=family in COMPILED)(run)
    for family, options in VISION.items():
        is_compiled = family in COMPILED
        run = image_program(family, options)
        dtype = "float64" if family in TRAINED else "float32"
        program("transformers", family, compiled=is_compiled, dtype=dtype)(run)


register()
