"""Models and transforms of torchvision."""

from functools import partial

from harness import as_array, fill, integers, named, normal, program, train, uniform

CLASSIFICATION = {
    "alexnet": 64,
    "convnext_tiny": 48,
    "densenet121": 64,
    "efficientnet_b0": 48,
    "efficientnet_v2_s": 48,
    "googlenet": 64,
    "inception_v3": 112,
    "maxvit": 128,
    "mnasnet0_5": 48,
    "mobilenet_v2": 48,
    "mobilenet_v3_small": 48,
    "regnet_x_400mf": 96,
    "regnet_y_400mf": 96,
    "resnet18": 48,
    "resnet50": 48,
    "resnext50_32x4d": 48,
    "shufflenet_v2_x0_5": 48,
    "squeezenet1_1": 64,
    "swin": 64,
    "swin_v2": 64,
    "vgg11": 32,
    "vit": 32,
    "wide_resnet": 48,
}
WINDOWS = {"embed_dim": 12, "depths": [2, 2], "num_heads": [2, 3]}
OPTIONS = {
    "maxvit": {
        "input_size": (128, 128),
        "stem_channels": 8,
        "partition_size": 2,
        "block_channels": [8, 16, 16, 24],
        "block_layers": [1, 1, 1, 1],
        "head_dim": 4,
        "stochastic_depth_prob": 0.0,
    },
    "googlenet": {"aux_logits": False, "init_weights": False},
    "inception_v3": {"aux_logits": False, "init_weights": False},
    "swin": {**WINDOWS, "patch_size": [4, 4], "window_size": [4, 4]},
    "swin_v2": {**WINDOWS, "patch_size": [4, 4], "window_size": [4, 4]},
    "swin3d": {**WINDOWS, "patch_size": [2, 4, 4], "window_size": [2, 4, 4]},
    "vit": {
        "image_size": 32,
        "patch_size": 8,
        "num_layers": 2,
        "num_heads": 4,
        "hidden_dim": 32,
        "mlp_dim": 64,
    },
    "wide_resnet": {"layers": [1, 1, 1, 1], "width_per_group": 128},
}
FEATURES = {"alexnet": 256 * 6 * 6, "vgg11": 512 * 7 * 7}
VIDEO = {
    "mc3_18": (2, 3, 4, 32, 32),
    "r2plus1d_18": (2, 3, 4, 32, 32),
    "r3d_18": (2, 3, 4, 32, 32),
    "swin3d": (2, 3, 8, 32, 32),
}
SEGMENTATION = ("deeplabv3_mobilenet_v3_large", "fcn_resnet50", "lraspp_mobilenet_v3_large")
DETECTION = ("fasterrcnn_mobilenet_v3_large_320_fpn", "fcos_resnet50_fpn", "retinanet_resnet50_fpn")
DETECTION += ("ssdlite320_mobilenet_v3_large", "maskrcnn_resnet50_fpn", "keypointrcnn_resnet50_fpn")
ALL_BOXES = ("rpn_batch_size_per_image", "box_batch_size_per_image")
# a squeezenet has no normalization, and a swin_v2 a table of coordinates in float32
SINGLE = ("squeezenet1_1", "swin_v2")
# PyTorch's derivative of `hardsigmoid` has 1/6 in float32, and its loss of logits in float64 and
# labels in float32 is float32; a maxvit has tables of parameters in float32
IN_FLOAT32 = ("mobilenet_v3", "ssdlite320", "rcnn", "maxvit")
COMPILED = ("mobilenet_v3_small", "resnet18", "squeezenet1_1", "vit")


def without_dropout(model):
    """Set the probability of each dropout and stochastic depth to zero."""
    for module in model.modules():
        if "Dropout" in type(module).__name__ or type(module).__name__ == "StochasticDepth":
            module.p = 0.0
        if type(module).__name__ == "MultiheadAttention":
            module.dropout = 0.0
    return model


def class_of(name):
    """The class of a model whose registered sizes are large, or need large images; else None."""
    from torchvision.models import maxvit, resnet, swin_transformer, video, vision_transformer

    second = {
        "block": swin_transformer.SwinTransformerBlockV2,
        "downsample_layer": swin_transformer.PatchMergingV2,
    }
    classes = {
        "maxvit": maxvit.MaxVit,
        "swin": swin_transformer.SwinTransformer,
        "swin_v2": partial(swin_transformer.SwinTransformer, **second),
        "swin3d": video.swin_transformer.SwinTransformer3d,
        "vit": vision_transformer.VisionTransformer,
        "wide_resnet": partial(resnet.ResNet, resnet.Bottleneck),
    }
    return classes.get(name)


def model_of(name, **options):
    import torch
    from torchvision import models

    model_class = class_of(name)
    if model_class is not None:
        return without_dropout(fill(model_class(**options)))
    model = models.get_model(name, weights=None, **options)
    if name in FEATURES:  # their own classifiers have 50 and 120 million weights
        model.classifier = torch.nn.Linear(FEATURES[name], 5)
    return without_dropout(fill(model))


def classification_program(name, shape, options):
    def run():
        import torch

        model = model_of(name, num_classes=5, **options)
        images, labels = normal(*shape), integers(5, 2, name="labels")

        def loss_of(model):
            logits = model(images)
            return torch.nn.functional.cross_entropy(logits, labels), logits

        results = train(model, loss_of)
        return results | {"evaluated": model.eval()(images)}

    return run


def segmentation_program(name):
    def run():
        import torch

        model = model_of(name, num_classes=5, weights_backbone=None)
        images, labels = normal(2, 3, 64, 64), integers(5, 2, 64, 64, name="labels")

        def loss_of(model):
            logits = model(images)["out"]
            return torch.nn.functional.cross_entropy(logits, labels), logits

        results = train(model, loss_of)
        return results | {"evaluated": model.eval()(images)["out"]}

    return run


def detection_program(name):
    """Losses and gradients of one step, and what is detected.

    The boxes to learn from are not drawn at random: a batch of them is larger than their number.
    """

    def run():
        import torch

        options = {} if name.startswith("ssd") else {"min_size": 64, "max_size": 64}
        if "rcnn" in name:
            options |= dict.fromkeys(ALL_BOXES, 10_000)
        model = model_of(name, num_classes=5, weights_backbone=None, **options)
        images = [uniform(3, 64, 64, name="one"), uniform(3, 64, 64, name="other")]
        boxes = torch.tensor([[4.0, 4.0, 30.0, 30.0], [20.0, 10.0, 60.0, 50.0]])
        target = {"boxes": boxes, "labels": torch.tensor([1, 2])}
        target["masks"] = (uniform(2, 64, 64, name="masks") > 0.5).to(torch.uint8)
        points = uniform(2, 17, 3, name="keypoints") * 24 + 5
        target["keypoints"] = torch.cat([points[..., :2], torch.ones(2, 17, 1)], dim=-1).float()
        targets = [{key: value.clone() for key, value in target.items()} for _ in images]
        losses = model(images, targets)
        sum(losses.values()).backward()
        results = {f"loss.{key}": as_array(value) for key, value in losses.items()}
        for parameter_name, parameter in model.named_parameters():
            if parameter.grad is not None:
                results[f"gradient.{parameter_name}"] = as_array(parameter.grad)
        with torch.no_grad():
            detected = model.eval()(images)
        return results | named(detected, "detected")

    return run


@program("torchvision", "transforms")
def transforms():
    from torchvision import transforms as first

    image = uniform(3, 40, 50)
    steps = {
        "resize": first.Resize((20, 24), antialias=True),
        "centre": first.CenterCrop(24),
        "pad": first.Pad((1, 2, 3, 4), padding_mode="reflect"),
        "gray": first.Grayscale(3),
        "normalize": first.Normalize([0.5, 0.4, 0.3], [0.2, 0.3, 0.4]),
        "blur": first.GaussianBlur(5, sigma=(1.0, 1.0)),
        "flip": first.RandomHorizontalFlip(p=1.0),
        "erase": first.RandomErasing(p=0.0),
        "solarize": first.RandomSolarize(0.5, p=1.0),
        "equalize": first.RandomAutocontrast(p=1.0),
        "five": first.FiveCrop(16),
    }
    results = {}
    for name, transform in steps.items():
        output = transform(image)
        outputs = output if isinstance(output, tuple) else (output,)
        results |= {f"{name}.{index}": value for index, value in enumerate(outputs)}
    return results


@program("torchvision", "transforms of pictures")
def transforms_of_pictures():
    from PIL import Image
    from torchvision import transforms as first

    pixels = as_array(integers(256, 40, 50, 3)).astype("uint8")
    picture = Image.fromarray(pixels)
    chain = first.Compose(
        [
            first.Resize(32),
            first.CenterCrop(28),
            first.PILToTensor(),
        ]
    )
    normalized = first.Compose([first.ToTensor(), first.Normalize([0.5] * 3, [0.25] * 3)])
    back = first.ToPILImage()(normalized(picture).clamp(0, 1))
    return {
        "bytes": chain(picture),
        "normalized": normalized(picture),
        "back": first.ToTensor()(back),
    }


@program("torchvision", "transforms.v2")
def transforms_v2():
    import torch
    from torchvision import tv_tensors
    from torchvision.transforms import v2

    image = tv_tensors.Image(uniform(3, 40, 50))
    boxes = [[1.0, 2.0, 20.0, 30.0], [10.0, 5.0, 45.0, 35.0]]
    boxes = tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=(40, 50))
    mask = tv_tensors.Mask(integers(3, 40, 50))
    steps = {
        "resize": v2.Resize((20, 24), antialias=True),
        "crop": v2.CenterCrop((24, 30)),
        "flip": v2.RandomHorizontalFlip(p=1.0),
        "pad": v2.Pad(3),
        "turn": v2.RandomRotation((30.0, 30.0)),
        "format": v2.ConvertBoundingBoxFormat("CXCYWH"),
        "perspective": v2.RandomPerspective(p=0.0),
    }
    results = {}
    for name, transform in steps.items():
        outputs = transform({"image": image, "boxes": boxes, "mask": mask})
        results |= {
            f"{name}.{key}": value.as_subclass(torch.Tensor) for key, value in outputs.items()
        }
        results[f"{name}.are_kept"] = [isinstance(outputs["boxes"], tv_tensors.BoundingBoxes)]
    return results


@program("torchvision", "transforms.functional")
def functional_transforms():
    from torchvision.transforms import functional

    image, pixels = uniform(3, 24, 32), integers(256, 3, 24, 32).byte()
    return {
        "affine": functional.affine(image, 20.0, [2, 3], 1.2, [5.0, 0.0]),
        "rotate": functional.rotate(image, 33.0),
        "perspective": functional.perspective(
            image, [[0, 0], [31, 0], [31, 23], [0, 23]], [[2, 1], [29, 3], [30, 20], [1, 22]]
        ),
        "brightness": functional.adjust_brightness(image, 1.3),
        "contrast": functional.adjust_contrast(image, 0.7),
        "saturation": functional.adjust_saturation(image, 1.6),
        "hue": functional.adjust_hue(image, 0.2),
        "gamma": functional.adjust_gamma(image, 0.8),
        "sharpness": functional.adjust_sharpness(image, 2.0),
        "equalize": functional.equalize(pixels),
        "posterize": functional.posterize(pixels, 3),
        "invert": functional.invert(pixels),
        "resized": functional.resize(pixels, [11, 13]),
        "nearest": functional.resize(pixels, [50, 40], functional.InterpolationMode.NEAREST),
    }


@program("torchvision", "features")
def features():
    from torchvision.models.feature_extraction import create_feature_extractor

    model = model_of("resnet18", num_classes=5).eval()
    nodes = {"layer1": "low", "layer3": "high", "avgpool": "pooled"}
    return create_feature_extractor(model, return_nodes=nodes)(normal(2, 3, 32, 32))


@program("torchvision", "boxes")
def boxes():
    import torch
    from torchvision import ops

    corners = uniform(12, 2, name="corners") * 20
    first = torch.cat([corners, corners + uniform(12, 2, name="sizes") * 20 + 1], dim=1)
    second = first.flip(0) + 1.0
    scores = uniform(12, name="scores")
    inside = ops.clip_boxes_to_image(first[:3], (30, 30))
    return {
        "iou": ops.box_iou(first, second),
        "giou": ops.generalized_box_iou(first, second),
        "complete": ops.complete_box_iou_loss(first, second),
        "area": ops.box_area(first),
        "converted": ops.box_convert(first, "xyxy", "cxcywh"),
        "clipped": ops.clip_boxes_to_image(first, (20, 20)),
        "focal": ops.sigmoid_focal_loss(normal(4, 3), uniform(4, 3), reduction="mean"),
        "kept": ops.nms(first, scores, 0.3),
        "kept_by_class": ops.batched_nms(first, scores, integers(3, 12, name="classes"), 0.3),
        "pooled": ops.roi_align(normal(1, 2, 30, 30), [inside], (4, 4), sampling_ratio=2),
    }


def tolerance_of(name):
    """The tolerance where PyTorch computes a part in float32, None for the default."""
    return 1e-6 if any(part in name for part in IN_FLOAT32) else None


def register():
    for name, size in CLASSIFICATION.items():
        run = classification_program(name, (2, 3, size, size), OPTIONS.get(name, {}))
        dtype = "float32" if name in SINGLE else "float64"
        options = {"dtype": dtype, "tolerance": tolerance_of(name)}
        program("torchvision", name, compiled=name in COMPILED, **options)(run)
    for name, shape in VIDEO.items():
        run = classification_program(name, shape, OPTIONS.get(name, {}))
        program("torchvision", name, dtype="float64")(run)
    for name in SEGMENTATION:
        run = segmentation_program(name)
        program("torchvision", name, dtype="float64", tolerance=tolerance_of(name))(run)
    for name in DETECTION:
        run = detection_program(name)
        program("torchvision", name, dtype="float64", tolerance=tolerance_of(name))(run)


register()
