"""Architectures of timm, small variants on small images: training, features, saving.

What a constructor lets choose is narrow or shallow, so that a program takes seconds.

Convolutional networks normalize over few numbers, and deep ones amplify rounding: they are compared
in float64, on images that are not one pixel at the end, where PyTorch itself is chaotic.
"""

import io

from harness import fill, integers, named, normal, program, train

CONVOLUTIONAL = {
    "caformer_s18": 32,
    "convmixer_1024_20_ks9_p14": 56,
    "crossvit_tiny_240": 120,
    "cs3darknet_s": 64,
    "cspresnet50": 64,
    "darknet17": 64,
    "densenet121": 64,
    "dla34": 64,
    "dpn48b": 48,
    "eca_resnet33ts": 64,
    "edgenext_xx_small": 64,
    "efficientformer_l1": 224,
    "efficientformerv2_s0": 128,
    "efficientnet_b0": 48,
    "efficientnet_lite0": 48,
    "efficientvit_b0": 64,
    "efficientvit_m0": 128,
    "ese_vovnet19b_slim": 64,
    "fastvit_t8": 64,
    "fbnetc_100": 48,
    "focalnet_tiny_srf": 32,
    "gcresnet33ts": 48,
    "gernet_s": 48,
    "ghostnet_050": 48,
    "ghostnetv2_100": 64,
    "hardcorenas_a": 48,
    "hgnetv2_b0": 48,
    "hrnet_w18_small": 64,
    "inception_v3": 112,
    "inception_next_atto": 64,
    "lambda_resnet26t": 64,
    "lcnet_035": 48,
    "levit_128s": 192,
    "mixnet_s": 48,
    "mnasnet_small": 48,
    "mobilenetv2_035": 48,
    "mobilenetv3_small_050": 48,
    "mobilenetv4_conv_small_035": 48,
    "mobileone_s0": 48,
    "mobilevit_xxs": 64,
    "mobilevitv2_050": 64,
    "nf_regnet_b0": 48,
    "regnetx_002": 64,
    "regnety_002": 64,
    "repghostnet_050": 48,
    "repvgg_a0": 48,
    "repvit_m0_9": 64,
    "res2net50_14w_8s": 48,
    "resnest14d": 48,
    "resnet10t": 48,
    "resnet18": 48,
    "resnetv2_18": 48,
    "resnext26ts": 48,
    "rexnet_100": 96,
    "selecsls42": 48,
    "semnasnet_050": 48,
    "seresnet18": 48,
    "skresnet18": 48,
    "spnasnet_100": 48,
    "starnet_s1": 48,
    "tf_efficientnetv2_b0": 48,
    "tinynet_e": 48,
    "xception41": 48,
}
NARROW_RESNET = {"channels": (16, 32, 64, 128)}
NARROW = {
    "densenet121": {"growth_rate": 16, "block_config": (3, 4, 6, 4)},
    "dla34": {"channels": (8, 16, 16, 32, 64, 128)},
    "dpn48b": {"k_sec": (1, 2, 2, 1)},
    "eca_resnet33ts": {"width_factor": 0.25},
    "efficientformer_l1": {"embed_dims": (16, 32, 48, 64), "depths": (1, 1, 2, 2)},
    "gcresnet33ts": {"width_factor": 0.25},
    "gernet_s": {"width_factor": 0.5},
    "lambda_resnet26t": {"width_factor": 0.5},
    "nf_regnet_b0": {"width_factor": 0.25},
    "repvgg_a0": {"width_factor": 0.5},
    "res2net50_14w_8s": {"layers": (1, 2, 2, 1), "channels": (32, 64, 96, 128)},
    "resnest14d": NARROW_RESNET,
    "resnet10t": NARROW_RESNET,
    "resnet18": NARROW_RESNET,
    "resnetv2_18": NARROW_RESNET,
    "resnext26ts": {"width_factor": 0.5},
    "seresnet18": NARROW_RESNET,
    "skresnet18": NARROW_RESNET,
}
# built for images of one size, which the constructor is told
OF_ONE_SIZE = ("crossvit_tiny_240", "efficientformerv2_s0", "efficientvit_m0", "levit_128s")
ATTENTIVE = {
    "beit_base_patch16_224": {"img_size": 32, "embed_dim": 48, "depth": 2, "num_heads": 3},
    "cait_xxs24_224": {"img_size": 32, "depth": 2},
    "coat_lite_tiny": {"img_size": 32},
    "convnext_atto": {},
    "convnextv2_atto": {},
    "davit_tiny": {
        "embed_dims": (16, 24, 32, 48),
        "num_heads": (1, 2, 2, 4),
        "depths": (1, 1, 1, 1),
    },
    "deit_tiny_patch16_224": {"img_size": 32, "depth": 2},
    "eva02_tiny_patch14_224": {"img_size": 28, "depth": 2},
    "gmlp_ti16_224": {"img_size": 32},
    "hiera_tiny_224": {"img_size": (32, 32), "stages": (1, 1, 1, 1)},
    "maxvit_rmlp_pico_rw_256": {"img_size": 128},
    "mixer_s16_224": {"img_size": 32},
    "mvitv2_tiny": {"img_size": 64},
    "nest_tiny": {"img_size": 64},
    "pit_ti_224": {"img_size": 64},
    "poolformer_s12": {},
    "pvt_v2_b0": {},
    "resmlp_12_224": {"img_size": 32},
    "sequencer2d_s": {"img_size": 28, "layers": (1, 1, 2, 1)},
    "swin_tiny_patch4_window7_224": {"img_size": 56, "embed_dim": 24, "depths": (1, 1, 1, 1)},
    "swinv2_tiny_window8_256": {"img_size": 64, "embed_dim": 24, "depths": (1, 1, 1, 1)},
    "tiny_vit_5m_224": {
        "embed_dims": (32, 48, 64, 96),
        "num_heads": (1, 2, 2, 3),
        "depths": (1, 1, 2, 1),
    },
    "tnt_s_patch16_224": {"img_size": 32, "depth": 2},
    "twins_svt_small": {"img_size": 64, "depths": (1, 1, 1, 1)},
    "vit_relpos_small_patch16_224": {"img_size": 32, "depth": 2},
    "vit_tiny_patch16_224": {"img_size": 32, "depth": 2},
    "visformer_tiny": {"img_size": 64},
    "volo_d1_224": {"img_size": 64},
    "xcit_nano_12_p16_224": {"img_size": 32, "depth": 2},
}
DEEP = ("gmlp_ti16_224", "mixer_s16_224", "tiny_vit_5m_224", "visformer_tiny")
# In float32 are the 1/6 of the derivative of `hardsigmoid`, edgenext's positions, and the attention
# of efficientvit_b0.
IN_FLOAT32 = ("edgenext_xx_small", "ghostnet_050", "ghostnetv2_100", "hardcorenas_a", "lcnet_035")
IN_FLOAT32 += ("mobilenetv3_small_050", "repghostnet_050", "efficientvit_b0", "ese_vovnet19b_slim")
# Their gradients are large where rounding is amplified most. Steps of the usual size then leave no
# digit of float64, in PyTorch too: where the images of convmixer_768_32 change by 1e-15 of
# themselves, its third loss changes by 28 %. These take small steps.
STEEP = ("convmixer_1024_20_ks9_p14", "efficientvit_b0", "efficientvit_m0", "ese_vovnet19b_slim")
STEEP += ("ghostnetv2_100", "levit_128s", "mobilenetv4_conv_small_035", "mobileone_s0")
STEEP += ("repvit_m0_9", "rexnet_100", "selecsls42")
COMPILED = ("convnext_atto", "mixer_s16_224", "mobilenetv3_small_050", "resnet18")
COMPILED += ("swin_tiny_patch4_window7_224", "vit_tiny_patch16_224")


def architecture_program(name, size, options):
    """Train on two images, then load what was saved and classify with it."""

    def run():
        import timm
        import torch

        model = fill(timm.create_model(name, num_classes=5, **options))
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
            if type(module).__name__ == "DropPath":
                module.drop_prob = 0.0
            if hasattr(module, "drop_rate"):
                module.drop_rate = 0.0
        images, labels = normal(2, 3, size, size), integers(5, 2, name="labels")

        def loss_of(model):
            logits = model(images)
            return torch.nn.functional.cross_entropy(logits, labels), logits

        optimizer = None
        if name in STEEP:
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, eps=1.0)
        results = train(model, loss_of, optimizer=optimizer)
        saved = io.BytesIO()
        torch.save(model.state_dict(), saved)
        saved.seek(0)
        loaded = timm.create_model(name, num_classes=5, **options).eval()
        loaded.load_state_dict(torch.load(saved))
        features = named(loaded.forward_features(images), "features")
        return results | {"evaluated": loaded(images)} | features

    return run


def register():
    for name, size in CONVOLUTIONAL.items():
        told = {"img_size": size} if name in OF_ONE_SIZE else {}
        run = architecture_program(name, size, NARROW.get(name, {}) | told)
        options = {"dtype": "float64", "tolerance": 1e-6 if name in IN_FLOAT32 else None}
        program("timm", name, compiled=name in COMPILED, **options)(run)
    for name, options in ATTENTIVE.items():
        size = options.get("img_size", 64)
        run = architecture_program(name, size if isinstance(size, int) else size[0], options)
        dtype = "float64" if name in DEEP else "float32"
        program("timm", name, compiled=name in COMPILED, dtype=dtype)(run)


register()
