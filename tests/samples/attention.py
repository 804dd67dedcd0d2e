"""Samples of attention."""

from samples import Mask, S, T

FLASH = "ops._scaled_dot_product_flash_attention_for_cpu"
DROPPED = "ops._attention_with_dropout"
ATTEND = "nn.functional.scaled_dot_product_attention"
SOME_MASKED = [[True, False, True], [False, False, False]]
HEADS = T(1, 2, 2, 3)
PAIR = T(1, 2, 3, 3), T(1, 2, 3, 3)

SAMPLES = [
    S(FLASH, HEADS, *PAIR),
    S(FLASH, HEADS, *PAIR, 0.0, True, scale=0.3),
    S(FLASH, HEADS, *PAIR, attn_mask=T(2, 3, constant=True)),
    S(
        f"{FLASH}_backward",
        T(1, 2, 2, 2),
        T(1, 2, 2, 2),
        T(1, 2, 3, 2),
        T(1, 2, 3, 2),
        T(1, 2, 2, 2),
        T(1, 2, 2, low=0.5, high=1.5),
        0.0,
        False,
    ),
    S(
        f"{FLASH}_backward",
        T(1, 1, 2, 2),
        T(1, 1, 2, 2),
        T(1, 1, 3, 2),
        T(1, 1, 3, 2),
        T(1, 1, 2, 2),
        T(1, 1, 2, low=0.5, high=1.5),
        0.0,
        True,
        scale=-0.7,
        attn_mask=T(2, 3, constant=True),
    ),
    S(DROPPED, HEADS, *PAIR, Mask(2, 2, 3), 0.5, True, scale=0.3),
    S(DROPPED, HEADS, *PAIR, Mask(2, 3), 0.8, attn_mask=T(2, 3)),
    S(
        f"{DROPPED}_backward",
        T(1, 2, 2, 2),
        T(1, 2, 2, 2),
        T(1, 2, 3, 2),
        T(1, 2, 3, 2),
        T(1, 2, 2, 2),
        T(1, 2, 2, low=0.5, high=1.5),
        Mask(2, 3),
        0.7,
        True,
    ),
    S(ATTEND, HEADS, *PAIR, T(2, 3)),
    S(ATTEND, HEADS, *PAIR, is_causal=True),
    S(ATTEND, T(2, 3), T(3, 3), T(3, 2), Mask(values=SOME_MASKED)),
    S(ATTEND, T(2, 1, 2, 2, 3), T(2, 3, 3), T(1, 3, 2)),
    S(ATTEND, T(2, 4, 2, 2), T(2, 2, 3, 2), T(2, 1, 3, 2), T(4, 1, 3), enable_gqa=True),
]
