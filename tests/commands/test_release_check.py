"""What a package index shows of the README, and the check of a wheel."""

import zipfile
from pathlib import Path

import pytest

from commands import release_check
from jaxgrad.stubs import build_backend

TEXT = """[here](docs/a.md), [two
lines](b.md#part), [far](https://example.org) and [above](#top)
![a picture](docs/p.svg)

```python
functions[0](x)
```
"""


def test_links_to_files_are_texts_and_the_rest_stays():
    assert build_backend.without_relative_links(TEXT) == (
        "here, two\nlines, [far](https://example.org) and [above](#top)\n"
        "```python\nfunctions[0](x)\n```\n"
    )


def test_relative_links_are_those_of_prose():
    assert release_check.relative_links(TEXT) == ["docs/a.md", "b.md#part", "docs/p.svg"]


@pytest.mark.checkout
def test_no_link_of_the_readme_leads_nowhere_on_an_index():
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    assert release_check.relative_links(readme)
    assert not release_check.relative_links(build_backend.without_relative_links(readme))


def test_description_is_the_body_of_the_metadata(tmp_path):
    wheel = tmp_path / "a.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("a-1.dist-info/METADATA", "Name: a\nVersion: 1\n\n# a\n\nText\n")
    assert release_check.description(wheel) == "# a\n\nText\n"
