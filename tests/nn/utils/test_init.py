"""Modules without initialization."""

from helpers.as_torch import as_torch, error


@as_torch("""
    'Linear(in_features=2, out_features=3, bias=False)'
    True
    [RuntimeError("Module must support a 'device' arg to skip initialization")]
    True
""")
def test_skip_init(torch):
    class Other(torch.nn.Module):
        def __init__(self):
            super().__init__()

    torch.manual_seed(1)
    layer = torch.nn.utils.skip_init(torch.nn.Linear, 2, 3, bias=False)
    drawn = torch.rand(2)
    torch.manual_seed(1)
    same = (drawn == torch.rand(2)).all().item()
    refused = [error(torch.nn.utils.skip_init, kind) for kind in (Other,)]
    return repr(layer), same, refused, layer.weight.requires_grad
