"""Architectures of timm, small variants on small images: training, features, saving.

Convolutional networks normalize over two images, which amplifies rounding: they are compared in
float64.
"""

import io

from harness import fill, integers, normal, program, train

CONVOLUTIONAL = {
    "crossvit_tiny_240": 240,
    "cs3darknet_s": 64,
    "cspresnet50": 64,
    "darknet17": 64,
    "densenet121": 32,
    "dla34": 32,
    "dpn48b": 32,
    "eca_resnet33ts": 64,
    "edgenext_xx_small": 64,
    "efficientformer_l1": 224,
    "efficientformerv2_s0": 224,
    "efficientnet_b0": 32,
    "efficientnet_lite0": 32,
    "efficientvit_b0": 64,
    "efficientvit_m0": 224,
    "ese_vovnet19b_slim": 32,
    "fastvit_t8": 64,
    "fbnetc_100": 32,
    "gcresnet33ts": 64,
    "gernet_s": 32,
    "ghostnet_050": 32,
    "ghostnetv2_100": 64,
    "hardcorenas_a": 32,
    "hgnetv2_b0": 32,
    "hrnet_w18_small": 64,
    "inception_v3": 96,
    "inception_next_atto": 64,
    "lambda_resnet26t": 64,
    "lcnet_035": 32,
    "levit_128s": 224,
    "mixnet_s": 32,
    "mnasnet_small": 32,
    "mobilenetv2_035": 32,
    "mobilenetv3_small_050": 32,
    "mobilenetv4_conv_small_035": 32,
    "mobileone_s0": 32,
    "mobilevit_xxs": 64,
    "mobilevitv2_050": 64,
    "nf_regnet_b0": 32,
    "regnetx_002": 32,
    "regnety_002": 32,
    "repghostnet_050": 32,
    "repvgg_a0": 32,
    "repvit_m0_9": 64,
    "res2net50_14w_8s": 32,
    "resnest14d": 32,
    "resnet10t": 32,
    "resnet18": 32,
    "resnetv2_18": 32,
    "resnext26ts": 64,
    "rexnet_100": 32,
    "selecsls42": 64,
    "semnasnet_050": 32,
    "seresnet18": 32,
    "skresnet18": 32,
    "spnasnet_100": 32,
    "starnet_s1": 32,
    "tf_efficientnetv2_b0": 32,
    "tinynet_e": 32,
    "xception41": 32,
}
ATTENTIVE = {
    "beit_base_patch16_224": {"img_size": 32, "embed_dim": 48, "depth": 2, "num_heads": 3},
    "cait_xxs24_224": {"img_size": 32, "depth": 2},
    "coat_lite_tiny": {"img_size": 32},
    "convmixer_768_32": {"dim": 32, "depth": 2},
    "convnext_atto": {},
    "convnextv2_atto": {},
    "davit_tiny": {
        "embed_dims": (16, 24, 32, 48),
        "num_heads": (1, 2, 2, 4),
        "num_groups": (1, 2, 2, 4),
        "depths": (1, 1, 1, 1),
    },
    "deit_tiny_patch16_224": {"img_size": 32, "depth": 2},
    "eva02_tiny_patch14_224": {"img_size": 28, "depth": 2},
    "focalnet_tiny_srf": {"embed_dim": 16, "depths": (1, 1, 1, 1)},
    "gmlp_ti16_224": {"img_size": 32, "num_blocks": 2},
    "hiera_tiny_224": {"img_size": (32, 32), "stages": (1, 1, 1, 1)},
    "maxvit_rmlp_pico_rw_256": {"img_size": 128},
    "metaformer_ppaa_s12_224": {},
    "mixer_s16_224": {"img_size": 32, "num_blocks": 2},
    "mvitv2_tiny": {"img_size": 64, "depths": (1, 1, 1, 1)},
    "nest_tiny": {"img_size": 64, "depths": (1, 1, 1)},
    "pit_ti_224": {"img_size": 64},
    "poolformer_s12": {},
    "pvt_v2_b0": {"img_size": 32},
    "resmlp_12_224": {"img_size": 32, "num_blocks": 2},
    "sequencer2d_s": {"img_size": 28},
    "swin_tiny_patch4_window7_224": {"img_size": 56, "embed_dim": 24, "depths": (1, 1, 1, 1)},
    "swinv2_tiny_window8_256": {"img_size": 64, "embed_dim": 24, "depths": (1, 1, 1, 1)},
    "tiny_vit_5m_224": {"img_size": 64},
    "tnt_s_patch16_224": {"img_size": 32, "depth": 2},
    "twins_svt_small": {"img_size": 64, "depths": (1, 1, 1, 1)},
    "vit_relpos_small_patch16_224": {"img_size": 32, "depth": 2},
    "vit_tiny_patch16_224": {"img_size": 32, "depth": 2},
    "visformer_tiny": {"img_size": 64},
    "volo_d1_224": {"img_size": 64, "layers": (1, 1, 1, 1)},
    "xcit_nano_12_p16_224": {"img_size": 32, "depth": 2},
}
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
        images, labels = normal(2, 3, size, size), integers(5, 2, name="labels")

        def loss_of(model):
            logits = model(images)
            return torch.nn.functional.cross_entropy(logits, labels), logits

        results = train(model, loss_of)
        saved = io.BytesIO()
        torch.save(model.state_dict(), saved)
        saved.seek(0)
        loaded = timm.create_model(name, num_classes=5, **options).eval()
        loaded.load_state_dict(torch.load(saved))
        return results | {"evaluated": loaded(images), "features": loaded.forward_features(images)}

    return run


def register():
    for name, size in CONVOLUTIONAL.items():
        run = architecture_program(name, size, {})
        program("timm", name, compiled=name in COMPILED, dtype="float64")(run)
    for name, options in ATTENTIVE.items():
        size = options.get("img_size", 64)
        run = architecture_program(name, size if isinstance(size, int) else size[0], options)
        program("timm", name, compiled=name in COMPILED)(run)


register()
