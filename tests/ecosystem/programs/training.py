"""Loops of training: skorch, ignite, fastai, lightning, opacus, and metrics and attributions."""

import tempfile

from harness import fill, gradients, integers, named, normal, program, state_of, train, uniform


def network():
    import torch

    layers = torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)
    return fill(torch.nn.Sequential(*layers))


def examples():
    return normal(12, 6, name="inputs"), integers(3, 12, name="labels")


def loader():
    import torch

    dataset = torch.utils.data.TensorDataset(*examples())
    return torch.utils.data.DataLoader(dataset, batch_size=4, shuffle=False)


@program("skorch", "classifier")
def classifier():
    import numpy as np
    import torch
    from skorch import NeuralNetClassifier

    inputs, labels = (tensor.numpy() for tensor in examples())
    net = NeuralNetClassifier(
        network(),
        criterion=torch.nn.CrossEntropyLoss,
        optimizer=torch.optim.Adam,
        lr=0.05,
        max_epochs=3,
        batch_size=4,
        train_split=None,
        verbose=0,
    )
    net.fit(inputs.astype(np.float32), labels)
    losses = net.history[:, "train_loss"]
    results = {"losses": losses, "predictions": net.predict(inputs)}
    results["probabilities"] = net.predict_proba(inputs)
    with tempfile.TemporaryDirectory() as folder:
        net.save_params(f_params=f"{folder}/parameters.pt")
        net.initialize()
        net.load_params(f_params=f"{folder}/parameters.pt")
    return results | state_of(net.module_)


@program("skorch", "grid_search")
def grid_search():
    from sklearn.model_selection import GridSearchCV
    from skorch import NeuralNetRegressor

    inputs, _ = (tensor.numpy() for tensor in examples())
    net = NeuralNetRegressor(
        network(),
        max_epochs=2,
        batch_size=4,
        train_split=None,
        verbose=0,
        iterator_train__shuffle=False,
    )
    search = GridSearchCV(net, {"lr": [0.01, 0.1]}, cv=2, scoring="neg_mean_squared_error")
    search.fit(inputs, inputs[:, :3])
    return {"scores": search.cv_results_["mean_test_score"], "best": search.best_params_["lr"]}


@program("pytorch-ignite", "engine", module="ignite")
def engine():
    import torch
    from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
    from ignite.handlers import EarlyStopping, PiecewiseLinear
    from ignite.metrics import Accuracy, ConfusionMatrix, Loss, Precision, RunningAverage

    model, criterion = network(), torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    trainer = create_supervised_trainer(model, optimizer, criterion)
    RunningAverage(output_transform=lambda loss: loss).attach(trainer, "average")
    schedule = PiecewiseLinear(optimizer, "lr", [(0, 0.01), (5, 0.1), (9, 0.01)])
    trainer.add_event_handler(Events.ITERATION_STARTED, schedule)
    metrics = {"accuracy": Accuracy(), "loss": Loss(criterion), "precision": Precision()}
    metrics["confusion"] = ConfusionMatrix(3)
    evaluator = create_supervised_evaluator(model, metrics=metrics)
    losses = []
    trainer.add_event_handler(
        Events.ITERATION_COMPLETED, lambda engine: losses.append(engine.state.output)
    )
    trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda engine: evaluator.run(loader()))
    handler = EarlyStopping(2, lambda engine: -engine.state.metrics["loss"], trainer)
    evaluator.add_event_handler(Events.COMPLETED, handler)
    trainer.run(loader(), max_epochs=3)
    results = named(dict(evaluator.state.metrics), "metric") | {"losses": losses}
    return results | state_of(model) | {"average": trainer.state.metrics["average"]}


@program("fastai", "learner")
def learner():
    from fastai.callback.schedule import fit_one_cycle  # noqa: F401 - a method of Learner
    from fastai.data.core import DataLoaders
    from fastai.data.load import DataLoader
    from fastai.learner import Learner
    from fastai.losses import CrossEntropyLossFlat
    from fastai.metrics import accuracy

    dataset = [*zip(*examples(), strict=True)]
    batches = [DataLoader(dataset, bs=4, shuffle=False, num_workers=0) for _ in range(2)]
    loaders = DataLoaders(*batches, device="cpu")
    learn = Learner(loaders, network(), loss_func=CrossEntropyLossFlat(), metrics=accuracy)
    with learn.no_bar(), learn.no_logging():
        learn.fit(1, lr=0.01)
        learn.fit_one_cycle(2, lr_max=0.02)
        scores, labels = learn.get_preds()
        measures = learn.validate()
    results = {"scores": scores, "labels": labels, "measures": [*measures]}
    results["losses"] = [float(loss) for loss in learn.recorder.losses]
    return results | state_of(learn.model)


@program("fastai", "layers", compiled=True)
def fastai_layers():
    import torch
    from fastai import layers

    model = torch.nn.Sequential(
        layers.ConvLayer(3, 8, stride=2),
        layers.ResBlock(1, 8, 8),
        layers.AdaptiveConcatPool2d(1),
        layers.Flatten(),
        layers.LinBnDrop(16, 3, p=0),
    )
    images, labels = normal(4, 3, 8, 8, name="images"), integers(3, 4, name="labels")

    def loss_of(model):
        scores = model(images)
        return torch.nn.functional.cross_entropy(scores, labels), scores

    return train(fill(model), loss_of, learning_rate=1e-3)


def lightning_module():
    import lightning
    import torch

    class Classifier(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.network, self.losses = network(), []

        def training_step(self, batch, index):
            loss = torch.nn.functional.cross_entropy(self.network(batch[0]), batch[1])
            self.log("train_loss", loss, on_epoch=True)
            self.losses.append(loss.item())
            return loss

        def validation_step(self, batch, index):
            scores = self.network(batch[0])
            self.log("val_loss", torch.nn.functional.cross_entropy(scores, batch[1]))

        def predict_step(self, batch, index):
            return self.network(batch[0])

        def configure_optimizers(self):
            optimizer = torch.optim.AdamW(self.parameters(), lr=0.02)
            schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
            return {"optimizer": optimizer, "lr_scheduler": schedule}

    return Classifier()


@program("lightning", "trainer")
def lightning_trainer():
    import lightning
    import torch
    from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
    from lightning.pytorch.loggers import CSVLogger

    model = lightning_module()
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = ModelCheckpoint(folder, monitor="val_loss", save_last=True)
        trainer = lightning.Trainer(
            max_epochs=3,
            accelerator="cpu",
            gradient_clip_val=0.5,
            accumulate_grad_batches=2,
            callbacks=[checkpoint, EarlyStopping("val_loss"), LearningRateMonitor()],
            logger=CSVLogger(folder),
            enable_progress_bar=False,
            enable_model_summary=True,
            log_every_n_steps=1,
        )
        trainer.fit(model, loader(), loader())
        predictions = trainer.predict(model, loader())
        saved = torch.load(checkpoint.last_model_path, weights_only=False)
    results = {"losses": model.losses, "predictions": torch.cat(predictions)}
    results |= named(dict(trainer.callback_metrics), "metric") | state_of(model)
    results |= {"best": float(checkpoint.best_model_score), "epoch": saved["epoch"]}
    return results | named(saved["state_dict"], "saved")


@program("lightning", "fabric", compiled=True)
def fabric():
    import lightning
    import torch

    fabric, model = lightning.Fabric(accelerator="cpu", devices=1), network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, eps=1e-3)
    model, optimizer = fabric.setup(model, optimizer)
    inputs, labels = examples()
    return train(
        model,
        lambda model: torch.nn.functional.cross_entropy(model(inputs), labels),
        optimizer=optimizer,
    )


@program("torchmetrics", "classification")
def classification():
    from torchmetrics import MetricCollection
    from torchmetrics import classification as kinds

    scores, labels = normal(20, 3, name="scores").softmax(-1), integers(3, 20, name="labels")
    metrics = MetricCollection(
        {
            "accuracy": kinds.MulticlassAccuracy(3),
            "f1": kinds.MulticlassF1Score(3, average=None),
            "roc": kinds.MulticlassAUROC(3),
            "precision": kinds.MulticlassAveragePrecision(3, average=None),
            "calibration": kinds.MulticlassCalibrationError(3),
            "confusion": kinds.MulticlassConfusionMatrix(3),
            "kappa": kinds.MulticlassCohenKappa(3),
            "matthews": kinds.MulticlassMatthewsCorrCoef(3),
            "jaccard": kinds.MulticlassJaccardIndex(3),
            "binned": kinds.MulticlassPrecisionRecallCurve(3, thresholds=5),
        }
    )
    steps = [metrics(scores[start : start + 10], labels[start : start + 10]) for start in (0, 10)]
    return named(steps, "step") | named(dict(metrics.compute()), "result")


@program("torchmetrics", "others", dtype="float64", tolerance=1e-6)  # some compute in float32
def other_metrics():
    import torchmetrics
    from torchmetrics import functional

    left, right = normal(20, name="left"), normal(20, name="right")
    kinds = (
        "MeanSquaredError MeanAbsoluteError PearsonCorrCoef SpearmanCorrCoef R2Score "
        "ExplainedVariance MeanAbsolutePercentageError CosineSimilarity KendallRankCorrCoef "
        "ConcordanceCorrCoef"
    )
    results = {}
    for kind in kinds.split():
        if kind == "CosineSimilarity":
            results[kind] = functional.cosine_similarity(left.view(4, 5), right.view(4, 5))
            continue
        metric = getattr(torchmetrics, kind)()
        metric.update(left[:10], right[:10])
        metric.update(left[10:], right[10:])
        results[kind] = metric.compute()
    images, target = uniform(2, 3, 16, 16, name="images"), uniform(2, 3, 16, 16, name="target")
    image = functional.image
    results["ssim"] = image.structural_similarity_index_measure(images, target, data_range=1.0)
    results["psnr"] = image.peak_signal_noise_ratio(images, target, data_range=1.0)
    results["mean"] = torchmetrics.MeanMetric()(left)
    results["bleu"] = functional.bleu_score(["a small cat sat down"], [["a small cat sat there"]])
    results["distance"] = functional.pairwise_cosine_similarity(left.view(4, 5), right.view(4, 5))
    results["retrieval"] = functional.retrieval_average_precision(left, right > 0)
    return results


@program("opacus", "gradients_of_examples")
def gradients_of_examples():
    import torch
    from opacus import GradSampleModule

    layers = torch.nn.Conv1d(2, 4, 3), torch.nn.GroupNorm(2, 4), torch.nn.Flatten()
    model = GradSampleModule(fill(torch.nn.Sequential(*layers, torch.nn.Linear(24, 3))))
    model(normal(5, 2, 8, name="signals")).square().mean().backward()
    results = {f"examples.{name}": p.grad_sample for name, p in model.named_parameters()}
    return results | gradients(model)


@program("opacus", "engine")
def private_engine():
    """Training with clipped gradients and noise of scale zero, and what it spends."""
    import torch
    from opacus import PrivacyEngine

    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer, batches = PrivacyEngine(accountant="rdp").make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader(),
        noise_multiplier=0.0,
        max_grad_norm=0.5,
        poisson_sampling=False,
    )
    losses = []
    for inputs, labels in batches:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses} | state_of(model)


@program("opacus", "accountant", dtype="float64")
def accountant():
    from opacus.accountants import PRVAccountant, RDPAccountant

    results = {}
    for kind in (RDPAccountant, PRVAccountant):
        spent = kind()
        for _ in range(10):
            spent.step(noise_multiplier=1.1, sample_rate=0.1)
        results[kind.__name__] = spent.get_epsilon(delta=1e-5)
    return results


@program("captum", "attributions", dtype="float64")
def attributions():
    from captum import attr

    model, (inputs, labels) = network(), examples()
    methods = {
        "integrated": attr.IntegratedGradients(model),
        "saliency": attr.Saliency(model),
        "product": attr.InputXGradient(model),
        "guided": attr.GuidedBackprop(model),
        "deconvolution": attr.Deconvolution(model),
        "lift": attr.DeepLift(model),
        "ablation": attr.FeatureAblation(model),
        "occlusion": attr.Occlusion(model),
        "layer": attr.LayerConductance(model, model[0]),
        "activation": attr.LayerActivation(model, model[1]),
        "neuron": attr.NeuronGradient(model, model[0]),
        "relevance": attr.LRP(model),
    }
    results = {}
    for name, method in methods.items():
        options = {"sliding_window_shapes": (2,)} if name == "occlusion" else {}
        chosen = {"activation": {}, "neuron": {"neuron_selector": 3}}
        target = chosen.get(name, {"target": labels})
        results[name] = method.attribute(inputs.clone().requires_grad_(), **target, **options)
    return results
