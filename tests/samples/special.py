"""Special functions, Bessel functions and orthogonal polynomials."""

from samples import Int, S, T, samples_of

NAN, INF = float("nan"), float("inf")
EVERYWHERE = "special.bessel_j0 special.bessel_j1 special.modified_bessel_i0"
EVERYWHERE += " special.modified_bessel_i1 special.spherical_bessel_j0 special.airy_ai"
POSITIVE = "special.bessel_y0 special.bessel_y1 special.modified_bessel_k0"
POSITIVE += " special.modified_bessel_k1 special.scaled_modified_bessel_k0"
POSITIVE += " special.scaled_modified_bessel_k1"
MODIFIED = "special.i0e special.i1 special.i1e"
NORMAL = "special.erfcx special.log_ndtr"
KINDS = [f"chebyshev_polynomial_{kind}" for kind in "tuvw"]
KINDS += [f"shifted_{kind}" for kind in KINDS]
KINDS += ["hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l"]
POLYNOMIALS = " ".join(f"special.{kind}" for kind in [*KINDS, "legendre_polynomial_p"])

SAMPLES = [
    *samples_of(EVERYWHERE, T(2, 3, low=-9, high=9)),
    *samples_of(EVERYWHERE, T(values=[0.0, 0.25, -0.4])),
    *samples_of(POSITIVE, T(2, 3, low=0.05, high=9)),
    *samples_of("special.bessel_j0 special.modified_bessel_k1 special.airy_ai", Int(2, low=1)),
    *samples_of(MODIFIED, T(2, 3, low=-9, high=9)),
    *samples_of(MODIFIED, T(3, low=-0.4, high=0.4)),
    *samples_of("special.i1", T(values=0.0)),
    *samples_of("special.i0e special.i1e", T(values=0.0), kink=True),
    *samples_of(NORMAL, T(2, 3, low=-4, high=4)),
    *samples_of(NORMAL, T(values=[12.0, -12.0])),
    S("special.log_ndtr", T(values=[60.0, -60.0]), kink=True),
    S("special.ndtr", T(2, 3, low=-4, high=4)),
    S("special.ndtr", T()),
    S("special.ndtri", T(2, 3, low=0.02, high=0.98)),
    S("special.ndtri", T(values=[0.001, 0.999]), kink=True),
    S("special.ndtri", T(values=[0.0, 1.0, 2.0]), kink=True),
    S("special.entr", T(2, 3, low=0.1)),
    S("special.entr", T(values=[0.0, -1.0, NAN]), kink=True),
    S("special.entr", Int(3)),
    S("special.xlog1py", T(2, 3), T(3, low=-0.7)),
    S("special.xlog1py", T(2, 1), 2.5),
    S("special.xlog1py", 2.5, T(2, low=-0.7)),
    S("special.xlog1py", T(values=[0.0, 0.0, 0.0]), T(values=[-1.0, 1.0, NAN]), kink=True),
    S("special.zeta", T(3, low=1.5, high=4, constant=True), T(2, 3, low=0.5)),
    S("special.zeta", 2.5, T(3, low=0.5)),
    S(
        "special.zeta",
        T(values=[1.0, 0.5, 2.0], constant=True),
        T(values=[2.0, 2.0, 0.0]),
        kink=True,
    ),
    *samples_of(POLYNOMIALS, T(2, 6), Int(values=[0, 1, 2, 3, 5, -1])),
    *samples_of(POLYNOMIALS, T(3, low=0.1, high=0.9), 11),
    *samples_of(POLYNOMIALS, T(values=[1.0, -1.0, 0.0]), Int(2, 1, low=2)),
    *samples_of(POLYNOMIALS, 0.5, T(values=[2.5, 3.0], constant=True)),
    S("ops._airy_ai_derivative", T(2, 3, low=-9, high=9)),
    S("ops._airy_ai_derivative", T(values=0.0)),
    S("ops._gegenbauer_polynomial", T(2, 3), Int(values=[0, 1, 4]), 1.5),
    S("ops._laguerre_polynomial", T(2, 3), Int(values=[0, 1, 4]), 1),
]
