"""torch.utils.benchmark.Compare: tables of measurements."""

import importlib

import pytest
from helpers.as_torch import as_torch

import jaxgrad
from jaxgrad.utils import benchmark


def library_of(torch):
    return importlib.import_module(f"{torch.__name__}.utils.benchmark")


def measurements(torch):
    """Four measurements of two sizes and two kinds."""
    library = library_of(torch)

    def measured(sub_label, description, times, threads=1):
        task = library.TaskSpec(
            "x", "", label="sum", sub_label=sub_label, description=description, num_threads=threads
        )
        return library.Measurement(1, times, task)

    return [
        measured("small", "eager", [2e-6, 2.1e-6, 2.2e-6]),
        measured("small", "compiled", [1e-6]),
        measured("large", "eager", [8e-3, 8e-3, 8.2e-3, 8.4e-3]),
        measured("large", "compiled", [1e-3, 3e-3, 2e-3], 4),
    ]


def words(table):
    """The lines of a table without its rules and spaces."""
    return [line.replace("-", " ").split() for line in str(table).splitlines()]


@as_torch
def test_tables(torch):
    compare = library_of(torch).Compare(measurements(torch))
    plain = words(compare)
    compare.trim_significant_figures()
    trimmed = words(compare)
    return [plain, trimmed]


@as_torch("""
    [[1, False, 'small'], [1, False, 'small'], [1, False, 'large'], [1, True, 'large']]
    [[2, 'compiled'], [3, 'eager']]
    [123000.0, 'microsecond']
""")
def test_what_measurements_say(torch):
    library, results = library_of(torch), measurements(torch)
    merged = library.Measurement.merge([results[1], results[1], results[0]])
    return [
        [[m.significant_figures, m.has_warnings, m.as_row_name] for m in results],
        [[len(m.times), m.description] for m in merged],
        [library.trim_sigfig(123456.0, 3), library.unit_to_english("us")],
    ]


def test_warnings_and_colors():
    compare = benchmark.Compare(measurements(jaxgrad))
    compare.highlight_warnings()
    assert "2000.0 (! 50%)" in str(compare) and "high variance" in str(compare)
    compare.colorize()
    assert "\033[92m" in str(compare)
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`"):
        compare.extend_results([1])
