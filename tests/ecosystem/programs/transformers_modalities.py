"""Models of transformers for speech, video, time series and several modalities, and `Trainer`."""

import tempfile

from harness import TOLERANCES, as_array, fill, integers, named, normal, program, train

VOCABULARY = 64
TEXT = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2}
TEXT |= {"num_attention_heads": 4, "intermediate_size": 64, "max_position_embeddings": 64}
TEXT |= {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
IMAGE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
IMAGE |= {"intermediate_size": 64, "image_size": 32, "patch_size": 8}
SPEECH = {**TEXT, "conv_dim": [16, 16, 16], "conv_kernel": [10, 3, 2], "conv_stride": [5, 2, 2]}
SPEECH |= {"num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2, "vocab_size": 12}
SPEECH |= {"feat_extract_norm": "group", "do_stable_layer_norm": False, "mask_time_prob": 0.0}
SEQUENCES = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 64}
SEQUENCES |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "decoder_ffn_dim": 64}
SEQUENCES |= {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
SERIES = {"prediction_length": 4, "context_length": 8, "lags_sequence": [1, 2], "input_size": 1}
SERIES |= {"num_time_features": 1, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1}


def tokens(name="tokens", length=8):
    return integers(VOCABULARY, 2, length, low=4, name=name)


def pair():
    return {"input_ids": tokens(), "pixel_values": normal(2, 3, 32, 32)}


def waves():
    return {"input_values": normal(2, 800), "labels": integers(11, 2, 4, low=1, name="labels")}


def classified_waves():
    return {"input_values": normal(2, 800), "labels": integers(2, 2, name="labels")}


def series():
    past = {"past_values": normal(2, 10), "past_time_features": normal(2, 10, 1, name="past")}
    future = {"future_values": normal(2, 4, name="future")}
    future["future_time_features"] = normal(2, 4, 1, name="features")
    mask = {"past_observed_mask": integers(1, 2, 10) + 1.0}
    return past | future | mask


def whisper_inputs():
    return {"input_features": normal(2, 8, 40), "labels": tokens("labels", 6)}


def video():
    return {"pixel_values": normal(2, 4, 3, 32, 32), "labels": integers(2, 2, name="labels")}


# name: the class of the model, its configuration by its own name or those of its parts, its inputs
MODELS = {
    "align": ("AlignModel", {"text_config": TEXT}, lambda: pair() | {"return_loss": True}),
    "altclip": (
        "AltCLIPModel",
        {"text_config": {**TEXT, "project_dim": 32}, "vision_config": IMAGE, "projection_dim": 16},
        lambda: pair() | {"return_loss": True},
    ),
    "audio-spectrogram-transformer": (
        "ASTForAudioClassification",
        {
            **IMAGE,
            "max_length": 32,
            "num_mel_bins": 16,
            "patch_size": 8,
            "frequency_stride": 8,
            "time_stride": 8,
        },
        lambda: {"input_values": normal(2, 32, 16), "labels": integers(2, 2, name="labels")},
    ),
    "autoformer": ("AutoformerForPrediction", {**SERIES, "label_length": 2}, series),
    "blip": (
        "BlipForConditionalGeneration",
        {
            "text_config": {**TEXT, "encoder_hidden_size": 32},
            "vision_config": IMAGE,
            "projection_dim": 16,
            "image_text_hidden_size": 16,
        },
        lambda: pair() | {"labels": tokens()},
    ),
    "clip": (
        "CLIPModel",
        {"text_config": TEXT, "vision_config": IMAGE, "projection_dim": 16},
        lambda: pair() | {"return_loss": True},
    ),
    "clipseg": (
        "CLIPSegForImageSegmentation",
        {
            "text_config": TEXT,
            "vision_config": IMAGE,
            "projection_dim": 16,
            "reduce_dim": 16,
            "extract_layers": [0, 1],
            "decoder_num_attention_heads": 4,
            "decoder_intermediate_size": 32,
        },
        lambda: pair() | {"labels": integers(2, 2, 32, 32).float()},
    ),
    # AdamW scales rounding of a sum's large gradients up
    "data2vec-audio": ("Data2VecAudioForCTC", {**SPEECH, "ctc_loss_reduction": "mean"}, waves),
    "decision_transformer": (
        "DecisionTransformerModel",
        {**TEXT, "state_dim": 3, "act_dim": 2, "max_ep_len": 20},
        lambda: {
            "states": normal(2, 4, 3),
            "actions": normal(2, 4, 2),
            "timesteps": integers(9, 2, 4),
            "rewards": normal(2, 4, 1, name="r"),
            "returns_to_go": normal(2, 4, 1, name="g"),
            "attention_mask": integers(1, 2, 4) + 1,
        },
    ),
    "git": (
        "GitForCausalLM",
        {**TEXT, "vision_config": IMAGE},
        lambda: pair() | {"labels": tokens()},
    ),
    "groupvit": (
        "GroupViTModel",
        {
            "text_config": TEXT,
            "vision_config": {
                **IMAGE,
                "depths": [1, 1],
                "num_group_tokens": [4, 0],
                "num_output_groups": [4, 4],
            },
            "projection_dim": 16,
            "projection_intermediate_dim": 32,
        },
        lambda: pair() | {"return_loss": True},
    ),
    "hubert": ("HubertForCTC", SPEECH, waves),
    "informer": ("InformerForPrediction", {**SERIES, "attention_type": "prob"}, series),
    "kosmos-2": (
        "Kosmos2ForConditionalGeneration",
        {
            "text_config": {
                "vocab_size": VOCABULARY,
                "embed_dim": 32,
                "layers": 2,
                "ffn_dim": 64,
                "attention_heads": 4,
            },
            "vision_config": IMAGE,
            "latent_query_num": 4,
        },
        lambda: (
            pair()
            | {
                "labels": tokens(),
                "image_embeds_position_mask": (integers(1, 2, 8) + 1).cumsum(1) <= 4,
            }
        ),
    ),
    "layoutlm": (
        "LayoutLMForMaskedLM",
        TEXT,
        lambda: {
            "input_ids": tokens(),
            "labels": tokens(),
            "bbox": integers(20, 2, 8, 4).cumsum(-1),
        },
    ),
    "lxmert": (
        "LxmertModel",
        {**TEXT, "l_layers": 1, "x_layers": 1, "r_layers": 1, "visual_feat_dim": 16},
        lambda: {
            "input_ids": tokens(),
            "visual_feats": normal(2, 3, 16),
            "visual_pos": normal(2, 3, 4, name="position"),
        },
    ),
    "owlvit": (
        "OwlViTModel",
        {"text_config": TEXT, "vision_config": IMAGE, "projection_dim": 16},
        lambda: pair() | {"return_loss": True},
    ),
    "patchtst": (
        "PatchTSTForPrediction",
        {
            "num_input_channels": 2,
            "context_length": 16,
            "d_model": 16,
            "patch_length": 4,
            "patch_stride": 4,
            "num_attention_heads": 2,
            "ffn_dim": 32,
            "num_hidden_layers": 2,
            "prediction_length": 4,
            "norm_type": "layernorm",
            "loss": "mse",
        },
        lambda: {"past_values": normal(2, 16, 2), "future_values": normal(2, 4, 2, name="f")},
    ),
    "patchtsmixer": (
        "PatchTSMixerForPrediction",
        {
            "context_length": 16,
            "patch_length": 4,
            "patch_stride": 4,
            "num_input_channels": 2,
            "d_model": 16,
            "num_layers": 2,
            "prediction_length": 4,
        },
        lambda: {"past_values": normal(2, 16, 2), "future_values": normal(2, 4, 2, name="f")},
    ),
    "sew": ("SEWForCTC", {**SPEECH, "squeeze_factor": 2}, waves),
    "siglip": (
        "SiglipModel",
        {"text_config": {**TEXT, "projection_size": 32}, "vision_config": IMAGE},
        lambda: pair() | {"return_loss": True},
    ),
    "speech_to_text": (
        "Speech2TextForConditionalGeneration",
        {
            **SEQUENCES,
            "vocab_size": VOCABULARY,
            "input_feat_per_channel": 8,
            "conv_channels": 16,
            "max_source_positions": 64,
            "max_target_positions": 64,
            "decoder_start_token_id": 1,
        },
        lambda: {"input_features": normal(2, 20, 8), "labels": tokens("labels", 6)},
    ),
    "time_series_transformer": ("TimeSeriesTransformerForPrediction", SERIES, series),
    "timesformer": ("TimesformerForVideoClassification", {**IMAGE, "num_frames": 4}, video),
    "unispeech-sat": ("UniSpeechSatForCTC", SPEECH, waves),
    "videomae": (
        "VideoMAEForVideoClassification",
        {**IMAGE, "num_frames": 4, "tubelet_size": 2},
        video,
    ),
    # the order of its patches is random, which the class token alone does not show
    "vilt": (
        "ViltForQuestionAnswering",
        {**TEXT, **IMAGE},
        lambda: pair() | {"labels": integers(2, 2, 2, name="labels").float()},
    ),
    "visual_bert": (
        "VisualBertModel",
        {**TEXT, "visual_embedding_dim": 16},
        lambda: {"input_ids": tokens(), "visual_embeds": normal(2, 3, 16)},
    ),
    "vit_mae": (
        "ViTMAEModel",
        {**IMAGE, "mask_ratio": 0.0},
        lambda: {"pixel_values": normal(2, 3, 32, 32), "noise": normal(2, 16, name="noise")},
    ),
    "vivit": (
        "VivitForVideoClassification",
        {**IMAGE, "num_frames": 4, "tubelet_size": [2, 8, 8]},
        video,
    ),
    "wav2vec2": ("Wav2Vec2ForCTC", SPEECH, waves),
    "wav2vec2-conformer": (
        "Wav2Vec2ConformerForCTC",
        {**SPEECH, "position_embeddings_type": "relative", "max_source_positions": 64},
        waves,
    ),
    "wavlm": (
        "WavLMForSequenceClassification",
        {**SPEECH, "classifier_proj_size": 16},
        classified_waves,
    ),
    "whisper": (
        "WhisperForConditionalGeneration",
        {
            **SEQUENCES,
            "vocab_size": VOCABULARY,
            "num_mel_bins": 8,
            "max_source_positions": 20,
            "max_target_positions": 32,
            "decoder_start_token_id": 1,
            "suppress_tokens": None,
            "begin_suppress_tokens": None,
        },
        whisper_inputs,
    ),
    "yolos": (
        "YolosModel",
        {**IMAGE, "image_size": [32, 32], "num_detection_tokens": 4},
        lambda: {"pixel_values": normal(2, 3, 32, 32)},
    ),
}
COMPILED = ("clip", "wav2vec2")
# gradients that rounding in float32 changes by more than the tolerance, in PyTorch itself
DOUBLE = ("align", "owlvit")
# of those, what computes softmax in float32 in any case
PARTLY_FLOAT32 = ("align",)


def total(outputs):
    """The sum of the mean squares of the outputs of a model that has no loss."""
    values = named(outputs, "output").values()
    return sum(value.square().mean() for value in values if value.is_floating_point())


def modality_program(family, class_name, options, inputs_of):
    """Train, save and load."""

    def run():
        import transformers

        config = transformers.AutoConfig.for_model(family, **options)
        model = fill(getattr(transformers, class_name)(config)).eval()
        inputs = inputs_of()

        def loss_of(model):
            outputs = model(**inputs)
            loss = outputs.get("loss")
            kept = named(outputs.get("logits"), "logits") | named(
                outputs.get("last_hidden_state"), "l"
            )
            return total(outputs) if loss is None else loss, kept

        results = train(model, loss_of)
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            loaded = type(model).from_pretrained(folder).eval()
        return results | named(loss_of(loaded), "loaded")

    return run


@program("transformers", "Trainer")
def trainer():
    """Train, evaluate, save, resume and predict."""
    import torch
    import transformers

    config = transformers.BertConfig(
        **TEXT, num_labels=3, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    examples = [
        {"input_ids": row, "attention_mask": torch.ones_like(row), "labels": label}
        for row, label in zip(
            integers(VOCABULARY, 16, 8, low=4), integers(3, 16, name="labels"), strict=True
        )
    ]

    def trainer_of(folder, steps):
        arguments = transformers.TrainingArguments(
            folder,
            max_steps=steps,
            per_device_train_batch_size=4,
            learning_rate=1e-2,
            logging_steps=1,
            save_steps=2,
            report_to=[],
            adam_epsilon=1e-3,
            use_cpu=True,
            max_grad_norm=1.0,
            gradient_accumulation_steps=2,
            train_sampling_strategy="sequential",
            lr_scheduler_type="cosine",
            warmup_steps=1,
            disable_tqdm=True,
            save_strategy="steps",
        )
        model = fill(transformers.BertForSequenceClassification(config))
        return transformers.Trainer(
            model,
            arguments,
            train_dataset=examples,
            eval_dataset=examples[:6],
            compute_metrics=lambda p: {
                "right": float((p.predictions.argmax(1) == p.label_ids).mean())
            },
        )

    results = {}
    with tempfile.TemporaryDirectory() as folder:
        first = trainer_of(folder, 2)
        first.train()
        results["evaluation"] = first.evaluate()["eval_loss"]
        resumed = trainer_of(folder, 4)
        resumed.train(resume_from_checkpoint=True)
        logged = [entry["loss"] for entry in resumed.state.log_history if "loss" in entry]
        results["losses"] = logged
        prediction = resumed.predict(examples[:5])
        results["predictions"], results["right"] = (
            prediction.predictions,
            prediction.metrics["test_right"],
        )
        results |= {
            f"parameter.{name}": as_array(parameter)
            for name, parameter in resumed.model.named_parameters()
        }
    return results


def register():
    for family, (class_name, options, inputs_of) in MODELS.items():
        run = modality_program(family, class_name, options, inputs_of)
        dtype = "float64" if family in DOUBLE else "float32"
        tolerance = TOLERANCES["float32" if family in PARTLY_FLOAT32 else dtype]
        is_compiled = family in COMPILED
        program("transformers", family, is_compiled, dtype, tolerance)(run)


register()
