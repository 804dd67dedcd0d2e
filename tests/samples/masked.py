"""The functions of torch.masked, which are composed of operators."""

from samples import Dtype, Int, Mask, S, T, samples_of

SOME = Mask(values=[[True, False, True], [False, True, True]])
NONE = Mask(values=[[True, False, True], [False, False, False]])
FOUR = [[True, True, False, True], [False, True, True, True], [True, False, False, True]]
DOUBLE = Dtype("float64")

SAMPLES = [
    *samples_of("masked.sum masked.prod masked.mean", T(2, 3), 1, mask=SOME, complex=True),
    *samples_of(
        "masked.sum masked.prod masked.amax masked.amin", T(2, 3), (0, 1), keepdim=True, mask=NONE
    ),
    *samples_of("masked.sum masked.prod masked.amax masked.amin", Int(2, 3), mask=SOME),
    *samples_of("masked.mean masked.var masked.std", T(2, 3), mask=NONE),
    *samples_of("masked.amax masked.amin", T(2, 3), 1, mask=SOME),
    *samples_of("masked.argmax masked.argmin", T(2, 3), 1, mask=SOME),
    *samples_of("masked.argmax masked.argmin", T(2, 3), keepdim=True, mask=SOME),
    *samples_of("masked.var masked.std", T(3, 4), 1, unbiased=False, mask=Mask(values=FOUR)),
    S("masked.std", T(2, 3, constant=True), 1, unbiased=False, mask=NONE),  # the gradient is nan
    *samples_of("masked.var masked.std", T(2, 3), 1, correction=0.5, keepdim=True),
    *samples_of("masked.median masked.logsumexp", T(2, 3), 1, mask=SOME),
    *samples_of("masked.median masked.logsumexp", T(2, 3), -1, keepdim=True),
    *samples_of("masked.softmax masked.softmin", T(2, 3), 1, mask=SOME),
    S("masked.log_softmax", T(2, 3), 0),
    S("masked.log_softmax", T(2, 3), 1, mask=SOME, kink=True),  # elements are -inf
    *samples_of(
        "masked.softmax masked.softmin",
        T(2, 3),
        1,
        dtype=DOUBLE,
        mask=Mask(values=[True, False, True]),
    ),
    *samples_of("masked.cumsum masked.cumprod", T(2, 3), 1, mask=SOME),
    *samples_of("masked.cumsum masked.cumprod", Int(2, 3), -2, mask=SOME),
    S("masked.norm", T(2, 3), 2.0, 1, mask=SOME, complex=True),
    S("masked.norm", T(2, 3), 3, mask=SOME),
    S("masked.norm", T(2, 3), float("-inf"), 1, keepdim=True, mask=SOME),
    S("masked.normalize", T(2, 3), 2.0, 1, mask=SOME, complex=True),
    S("masked.normalize", T(2, 3), 1.0, -1),
    S("masked.logaddexp", T(2, 3), T(2, 3), input_mask=SOME),
    S("masked.logaddexp", T(3), T(3), other_mask=Mask(values=[True, True, False])),
]
