"""Images: kornia, segmentation_models_pytorch and monai."""

from harness import fill, integers, normal, program, train, uniform


def differentiated(functions, images):
    """Values and the gradients of their squares, by the names of functions of images."""
    results = {}
    for name, function in functions.items():
        inputs = images.clone().requires_grad_()
        values = function(inputs)
        values.square().sum().backward()
        results |= {name: values, f"gradient.{name}": inputs.grad}
    return results


@program("kornia", "geometry", dtype="float64")
def geometry():
    import torch
    from kornia import geometry

    images, angle = uniform(2, 3, 8, 8, name="images"), torch.tensor([10.0, -25.0])
    matrix = torch.eye(3).expand(2, 3, 3) + 0.01 * normal(2, 3, 3, name="matrix")
    moves = torch.tensor([[1.0, 0.5], [-1.0, 2.0]])
    functions = {
        "rotate": lambda images: geometry.rotate(images, angle),
        "translate": lambda images: geometry.translate(images, moves),
        "scale": lambda images: geometry.scale(images, torch.tensor([1.2, 0.8])),
        "shear": lambda images: geometry.shear(images, 0.1 * moves),
        "resize": lambda images: geometry.resize(images, (5, 6)),
        "affine": lambda images: geometry.warp_affine(images, matrix[:, :2], (8, 8)),
        "perspective": lambda images: geometry.warp_perspective(images, matrix, (8, 8)),
        "pyramid": geometry.pyrdown,
        "flip": geometry.hflip,
    }
    results = differentiated(functions, images)
    points = normal(2, 4, 2, name="points")
    results["homography"] = geometry.find_homography_dlt(points, points + uniform(2, 4, 2))
    rotation = geometry.axis_angle_to_rotation_matrix(normal(2, 3, name="axis"))
    results["quaternion"] = geometry.rotation_matrix_to_quaternion(rotation)
    return results | {"rotation": rotation}


@program("kornia", "filters", dtype="float64")
def filters():
    from kornia import filters

    functions = {
        "gaussian": lambda images: filters.gaussian_blur2d(images, (3, 3), (1.5, 1.5)),
        "box": lambda images: filters.box_blur(images, (3, 3)),
        "median": lambda images: filters.median_blur(images, (3, 3)),
        "bilateral": lambda images: filters.bilateral_blur(images, (3, 3), 0.1, (1.5, 1.5)),
        "laplacian": lambda images: filters.laplacian(images, 3),
        "sobel": filters.sobel,
        "gradients": filters.spatial_gradient,
        "unsharp": lambda images: filters.unsharp_mask(images, (3, 3), (1.5, 1.5)),
        "motion": lambda images: filters.motion_blur(images, 3, 35.0, 0.5),
        "canny": lambda images: filters.canny(images)[0],
    }
    return differentiated(functions, uniform(2, 3, 8, 8, name="images"))


@program("kornia", "color_and_enhance", dtype="float64")
def color_and_enhance():
    from kornia import color, enhance

    functions = {
        "gray": color.rgb_to_grayscale,
        "hsv": color.rgb_to_hsv,
        "lab": color.rgb_to_lab,
        "yuv": color.rgb_to_yuv,
        "luv": color.rgb_to_luv,
        "xyz": color.rgb_to_xyz,
        "brightness": lambda images: enhance.adjust_brightness(images, 0.2),
        "contrast": lambda images: enhance.adjust_contrast(images, 0.7),
        "saturation": lambda images: enhance.adjust_saturation(images, 1.3),
        "gamma": lambda images: enhance.adjust_gamma(images, 1.4),
        "sharpness": lambda images: enhance.sharpness(images, 0.5),
        "equalize": enhance.equalize,
    }
    return differentiated(functions, uniform(2, 3, 8, 8, name="images"))


@program("kornia", "losses", dtype="float64")
def losses():
    from kornia import losses

    target, labels = uniform(2, 3, 16, 16, name="target"), integers(3, 2, 16, 16, name="labels")
    functions = {
        "ssim": lambda images: losses.ssim_loss(images, target, 5),
        "psnr": lambda images: losses.psnr_loss(images, target, 1.0),
        "variation": losses.total_variation,
        "dice": lambda images: losses.dice_loss(images, labels),
        "focal": lambda images: losses.focal_loss(images, labels, 0.5, reduction="mean"),
        "tversky": lambda images: losses.tversky_loss(images, labels, 0.5, 0.5),
        "charbonnier": lambda images: losses.charbonnier_loss(images, target, reduction="mean"),
        "lovasz": lambda images: losses.lovasz_softmax_loss(images, labels),
    }
    return differentiated(functions, uniform(2, 3, 16, 16, name="images"))


@program("kornia", "features", dtype="float64")
def features():
    from kornia import feature, morphology

    kernel = uniform(3, 3, name="kernel").round()
    functions = {
        "harris": lambda images: feature.harris_response(images),
        "hessian": feature.hessian_response,
        "dilation": lambda images: morphology.dilation(images, kernel),
        "erosion": lambda images: morphology.erosion(images, kernel),
    }
    return differentiated(functions, uniform(2, 1, 12, 12, name="images"))


@program("kornia", "train_through_warp", compiled=True)
def train_through_warp():
    import torch
    from kornia import geometry, losses

    class Alignment(torch.nn.Module):
        def __init__(self):
            super().__init__()
            # away from zero, where pixels are hit exactly and the derivative jumps
            self.shift = torch.nn.Parameter(0.1 * normal(1, 2, 3, name="shift"))

        def forward(self, images):
            matrix = torch.eye(3)[None, :2] + self.shift
            return geometry.warp_affine(images, matrix, (16, 16))

    images, target = uniform(1, 3, 16, 16, name="images"), uniform(1, 3, 16, 16, name="target")

    def loss_of(model):
        moved = model(images)
        return losses.ssim_loss(moved, target, 5) + (moved - target).abs().mean(), moved

    return train(Alignment(), loss_of)


def segmentation(model, size=32, classes=2):
    """Three steps in float64 on two images, with the labels of pixels."""
    import torch

    images, labels = normal(2, 3, size, size), integers(classes, 2, size, size, name="labels")

    def loss_of(model):
        scores = model(images)
        return torch.nn.functional.cross_entropy(scores, labels), scores

    return train(fill(model), loss_of, learning_rate=1e-3)


@program("segmentation_models_pytorch", "unet", dtype="float64", tolerance=1e-6, compiled=True)
def unet():
    import segmentation_models_pytorch as segmentation_models

    model = segmentation_models.Unet(
        "resnet18", encoder_weights=None, classes=2, encoder_depth=3, decoder_channels=(16, 8, 8)
    )
    return segmentation(model)


@program("segmentation_models_pytorch", "fpn", dtype="float64", tolerance=1e-6)
def fpn():
    import segmentation_models_pytorch as segmentation_models

    return segmentation(
        segmentation_models.FPN("resnet18", encoder_weights=None, classes=2, decoder_dropout=0), 64
    )


@program("segmentation_models_pytorch", "losses")
def segmentation_losses():
    from segmentation_models_pytorch import losses

    labels, masks = integers(3, 2, 8, 8, name="labels"), uniform(2, 1, 8, 8, name="masks").round()
    functions = {
        "dice": lambda scores: losses.DiceLoss("multiclass")(scores, labels),
        "jaccard": lambda scores: losses.JaccardLoss("multiclass")(scores, labels),
        "tversky": lambda scores: losses.TverskyLoss("multiclass")(scores, labels),
        "focal": lambda scores: losses.FocalLoss("multiclass")(scores, labels),
        "lovasz": lambda scores: losses.LovaszLoss("multiclass")(scores, labels),
        "soft": lambda scores: losses.SoftBCEWithLogitsLoss(smooth_factor=0.1)(
            scores[:, :1], masks
        ),
    }
    return differentiated(functions, normal(2, 3, 8, 8, name="scores"))


@program("monai", "unet", dtype="float64", compiled=True)
def monai_unet():
    from monai.losses import DiceCELoss
    from monai.networks.nets import UNet

    model = UNet(
        spatial_dims=3,
        in_channels=1,
        out_channels=2,
        channels=(4, 8),
        strides=(2,),
        num_res_units=1,
    )
    volume, labels = normal(1, 1, 8, 8, 8), integers(2, 1, 1, 8, 8, 8, name="labels")
    criterion = DiceCELoss(to_onehot_y=True, softmax=True)

    def loss_of(model):
        scores = model(volume)
        return criterion(scores, labels), scores

    return train(fill(model), loss_of)


@program("monai", "vision_transformer")
def monai_vision_transformer():
    from monai.networks.nets import ViT

    model = ViT(
        in_channels=1,
        img_size=(16, 16),
        patch_size=(8, 8),
        hidden_size=32,
        mlp_dim=64,
        num_layers=2,
        num_heads=4,
        classification=True,
        num_classes=3,
        spatial_dims=2,
    )
    images = normal(2, 1, 16, 16)
    return train(fill(model), lambda model: (model(images)[0].square().mean(), model(images)[0]))


@program("monai", "transforms_and_metrics")
def transforms_and_metrics():
    import torch
    from monai import metrics, transforms
    from monai.inferers import sliding_window_inference

    volume = uniform(1, 8, 8, 8, name="volume")
    results = {
        "scaled": transforms.ScaleIntensity()(volume),
        "normal": transforms.NormalizeIntensity()(volume),
        "resized": transforms.Resize((4, 6, 5))(volume),
        "flipped": transforms.Flip(0)(volume),
        "padded": transforms.SpatialPad((10, 9, 8))(volume),
        "gaussian": transforms.GaussianSmooth(1.0)(volume),
        "windows": sliding_window_inference(volume[None], (4, 4, 4), 2, torch.square, overlap=0.5),
    }
    prediction, truth = (uniform(2, 2, 8, 8, name=name).round() for name in ("a", "b"))
    results["dice"] = metrics.DiceMetric()(prediction, truth)
    results["distance"] = metrics.HausdorffDistanceMetric()(prediction, truth)
    return {name: torch.as_tensor(value) for name, value in results.items()}
