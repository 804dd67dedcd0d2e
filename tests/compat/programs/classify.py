"""Trains a small convolutional network on generated images, with arguments and checkpoints."""

import argparse
import json
import os
import random

import numpy as np
import torch
import torch.backends.cudnn as cudnn
import torch.nn as nn
import torch.optim as optim
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
from torch.utils.data import DataLoader, Dataset, Subset


class Shapes(Dataset):
    """Bars at several angles, one class for each angle."""

    def __init__(self, count, classes=4, size=12, transform=None):
        rng = np.random.RandomState(count)
        self.labels = rng.randint(classes, size=count)
        self.noise = rng.randn(count, size, size).astype(np.float32) * 0.3
        self.classes, self.size, self.transform = classes, size, transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        label = int(self.labels[index])
        y, x = np.mgrid[: self.size, : self.size] - self.size / 2
        angle = np.pi * label / self.classes
        image = (np.abs(x * np.sin(angle) - y * np.cos(angle)) < 1.5).astype(np.float32)
        image = torch.from_numpy(image + self.noise[index]).unsqueeze(0)
        if self.transform is not None:
            image = self.transform(image)
        return image, label


class Normalize:
    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def __call__(self, image):
        return (image - self.mean) / self.std


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Conv2d(inputs, outputs, 1, stride=stride)

    def forward(self, x):
        out = self.bn(self.conv(x))
        out += self.shortcut(x)
        return self.relu(out)


class Net(nn.Module):
    def __init__(self, classes=4, width=4):
        super().__init__()
        self.features = nn.Sequential(Block(1, width), Block(width, 2 * width, 2), nn.MaxPool2d(2))
        self.pool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(2 * width, classes)
        rng = np.random.RandomState(0)
        for m in self.modules():
            if isinstance(m, (nn.Conv2d, nn.Linear)):
                fan_in = m.weight[0].numel()
                m.weight.data.copy_(torch.from_numpy(rng.randn(*m.weight.shape) / fan_in**0.5))
                if m.bias is not None:
                    nn.init.constant_(m.bias, 0)

    def forward(self, x):
        x = self.features(x)
        x = torch.flatten(self.pool(x), 1)
        return self.fc(x)


class AverageMeter:
    def __init__(self):
        self.sum = self.count = 0

    def update(self, val, n=1):
        self.sum += val * n
        self.count += n

    @property
    def avg(self):
        return self.sum / self.count


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        maxk = max(topk)
        _, pred = output.topk(maxk, 1, True, True)
        correct = pred.t().eq(target.view(1, -1).expand_as(pred.t()))
        return [correct[:k].reshape(-1).float().sum(0).mul_(100.0 / target.size(0)) for k in topk]


def train(loader, model, criterion, optimizer, scaler, device, args):
    losses = AverageMeter()
    model.train()
    for images, target in loader:
        images = images.to(device, non_blocking=True)
        target = target.to(device, non_blocking=True)
        with torch.autocast(device_type=device.type, enabled=args.amp, dtype=torch.bfloat16):
            output = model(images)
            loss = criterion(output, target)
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=args.clip)
        scaler.step(optimizer)
        scaler.update()
        losses.update(loss.item(), images.size(0))
    return losses.avg


@torch.no_grad()
def validate(loader, model, criterion, device):
    losses, top1, top2 = AverageMeter(), AverageMeter(), AverageMeter()
    model.eval()
    for images, target in loader:
        images, target = images.to(device), target.to(device)
        output = model(images)
        losses.update(criterion(output, target).item(), images.size(0))
        acc1, acc2 = accuracy(output, target, topk=(1, 2))
        top1.update(acc1.item(), images.size(0))
        top2.update(acc2.item(), images.size(0))
    return losses.avg, top1.avg, top2.avg


def save_checkpoint(state, is_best, path):
    torch.save(state, path)
    if is_best:
        root, ext = os.path.splitext(path)
        torch.save(state["model"], root + "_best" + ext)


def main():
    parser = argparse.ArgumentParser(description="Image classification")
    parser.add_argument("--epochs", default=3, type=int)
    parser.add_argument("--start-epoch", default=0, type=int)
    parser.add_argument("-b", "--batch-size", default=8, type=int)
    parser.add_argument("--lr", default=0.1, type=float)
    parser.add_argument("--momentum", default=0.9, type=float)
    parser.add_argument("--wd", "--weight-decay", default=1e-4, type=float, dest="weight_decay")
    parser.add_argument("--clip", default=5.0, type=float)
    parser.add_argument("-j", "--workers", default=0, type=int)
    parser.add_argument("--resume", default="", type=str, metavar="PATH")
    parser.add_argument("--checkpoint", default="", type=str, metavar="PATH")
    parser.add_argument("--logdir", default="", type=str)
    parser.add_argument("--seed", default=0, type=int)
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--stop-after", default=None, type=int)
    args = parser.parse_args()

    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(args.seed)
        cudnn.deterministic = True
    cudnn.benchmark = False
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    model = Net().to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1).to(device)
    optimizer = optim.SGD(
        model.parameters(), args.lr, momentum=args.momentum, weight_decay=args.weight_decay
    )
    warmup = LinearLR(optimizer, start_factor=0.5, total_iters=1)
    cosine = CosineAnnealingLR(optimizer, T_max=max(args.epochs - 1, 1))
    scheduler = SequentialLR(optimizer, [warmup, cosine], milestones=[1])
    scaler = torch.amp.GradScaler(device.type, enabled=args.amp and device.type == "cuda")
    best, history = 0.0, []

    if args.resume and os.path.isfile(args.resume):
        checkpoint = torch.load(args.resume, map_location=device)
        args.start_epoch = checkpoint["epoch"]
        best = checkpoint["best"]
        history = checkpoint["history"]
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        scheduler.load_state_dict(checkpoint["scheduler"])

    step_model = torch.compile(model) if args.compile else model
    writer = None
    if args.logdir:
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter(log_dir=args.logdir)

    data = Shapes(48, transform=Normalize(0.25, 0.5))
    train_set, val_set = Subset(data, range(32)), Subset(data, range(32, 48))
    options = {"num_workers": args.workers, "pin_memory": device.type == "cuda"}
    train_loader = DataLoader(train_set, batch_size=args.batch_size, drop_last=True, **options)
    val_loader = DataLoader(val_set, batch_size=args.batch_size, shuffle=False, **options)

    for epoch in range(args.start_epoch, args.epochs):
        loss = train(train_loader, step_model, criterion, optimizer, scaler, device, args)
        val_loss, acc1, acc2 = validate(val_loader, step_model, criterion, device)
        lr = optimizer.param_groups[0]["lr"]
        scheduler.step()
        history.append([loss, val_loss, acc1, acc2, lr])
        is_best = acc1 > best
        best = max(acc1, best)
        if writer is not None:
            writer.add_scalar("train/loss", loss, epoch)
            writer.add_scalars("val", {"loss": val_loss, "acc1": acc1}, epoch)
            writer.add_histogram("fc", model.fc.weight, epoch)
        if args.checkpoint:
            state = {
                "epoch": epoch + 1,
                "model": model.state_dict(),
                "best": best,
                "history": history,
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
                "args": vars(args),
            }
            save_checkpoint(state, is_best, args.checkpoint)
        if args.stop_after is not None and epoch + 1 == args.stop_after:
            break
    if writer is not None:
        writer.close()
    total = sum(p.numel() for p in model.parameters() if p.requires_grad)
    norm = torch.stack([p.detach().norm() for p in model.parameters()]).norm().item()
    running = model.features[0].bn.running_mean.tolist()
    print(json.dumps({"history": history, "parameters": total, "norm": norm, "running": running}))


if __name__ == "__main__":
    main()
