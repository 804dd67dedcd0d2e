"""Random numbers in tests, as torch.testing._utils."""

from helpers.as_torch import as_torch


@as_torch("""
    True
    True
    True
""")
def test_the_generator_keeps_its_state(torch):
    torch.manual_seed(1)
    utils = torch.testing._utils
    state = torch.get_rng_state()
    with utils.freeze_rng_state():
        torch.rand(3)
    first, second = (utils.wrapper_set_seed(torch.rand, 3) for _ in range(2))
    drawn = torch.rand(3)
    torch.set_rng_state(state)
    return [
        torch.equal(first, second),
        torch.equal(drawn, torch.rand(3)),
        not drawn.eq(first).all(),
    ]
