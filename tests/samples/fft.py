"""Fourier transforms, and what is composed of them."""

from samples import S, T, samples_of

ONE = "fft.fft fft.ifft fft.irfft fft.hfft"
SEVERAL = "fft.fftn fft.ifftn fft.irfftn fft.hfftn"
OF_TWO = "fft.fft2 fft.ifft2 fft.irfft2 fft.hfft2"
REAL_ONE = "fft.rfft fft.ihfft"
REAL_SEVERAL = "fft.rfftn fft.ihfftn"
REAL_OF_TWO = "fft.rfft2 fft.ihfft2"

SAMPLES = [
    # operators
    S("ops._fft_c2c", T(2, 3), [0, 1], 1, True, complex="only"),
    S("ops._fft_c2c", T(4), [0], 2, False, complex="only"),
    S("ops._fft_c2c", T(2, 1, 2, 3), [0, 3, 1, 2], 0, True, complex="only"),
    S("ops._fft_r2c", T(2, 5), [0, 1], 0, True),
    S("ops._fft_r2c", T(4, 2), [0], 1, True),
    S("ops._fft_r2c", T(2, 3), [1], 2, False),
    S("ops._fft_c2r", T(2, 3), [0, 1], 2, 4, complex="only"),
    S("ops._fft_c2r", T(3, 2), [0], 1, 5, complex="only"),
    S("ops._fft_with_size", T(2, 3), 1, False, True, False, [3], False, True, [2, 2, 2]),
    S("ops._fft_with_size", T(2, 2, 2), 2, True, True, True, [2, 2], True, False, [2, 2, 2]),
    S("ops._fft_with_size", T(2, 3, 2), 2, True, False, True, [2, 4], False, True, [2, 4]),
    S("ops._fft_with_size", T(2, 3), 2, False, True, False, [2, 3], True, False, [2, 3, 2]),
    # compositions
    *samples_of(ONE, T(2, 4), complex=True),
    *samples_of(ONE, T(4, 2), 3, 0, norm="ortho", complex=True),
    *samples_of(ONE, T(3), n=6, norm="forward"),
    *samples_of(REAL_ONE, T(2, 4)),
    *samples_of(REAL_ONE, T(3, 2), 5, 0, "ortho"),
    *samples_of(SEVERAL, T(2, 3), complex=True),
    *samples_of(SEVERAL, T(2, 3, 2), (3, -1), (1, 0), "forward"),
    *samples_of(REAL_SEVERAL, T(2, 3)),
    *samples_of(REAL_SEVERAL, T(2, 3, 2), (3, -1), (1, 0), "forward"),
    *samples_of(OF_TWO, T(2, 2, 3), complex=True),
    *samples_of(REAL_OF_TWO, T(2, 2, 3)),
    *samples_of("fft.fftshift fft.ifftshift", T(2, 5), complex=True),
    *samples_of("fft.fftshift fft.ifftshift", T(3, 2), 0),
]
