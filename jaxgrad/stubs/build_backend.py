"""The build backend of pyproject.toml: setuptools, and in wheels the type stubs and a README
whose links lead somewhere.

Stubs are made by importing jaxgrad. So it takes more to build a wheel than to install a checkout
as editable, for which `jaxgrad stubs` writes them. pip imports this file without its package.
"""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from setuptools import build_meta
from setuptools.build_meta import build_editable as build_editable
from setuptools.build_meta import build_sdist as build_sdist
from setuptools.build_meta import build_wheel as build_wheel
from setuptools.build_meta import get_requires_for_build_editable as get_requires_for_build_editable
from setuptools.build_meta import get_requires_for_build_sdist as get_requires_for_build_sdist
from setuptools.build_meta import (
    prepare_metadata_for_build_editable as prepare_metadata_for_build_editable,
)
from setuptools.build_meta import (
    prepare_metadata_for_build_wheel as prepare_metadata_for_build_wheel,
)
from setuptools.command.build_py import build_py
from setuptools.command.egg_info import egg_info


def get_requires_for_build_wheel(config_settings=None):
    """What all public modules import, besides what setuptools asks for."""
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    imported = project["dependencies"] + project["optional-dependencies"]["tensorboard"]
    return build_meta.get_requires_for_build_wheel(config_settings) + imported


class BuildWithStubs(build_py):
    """Collects the files of the package, and writes the stubs beside them."""

    def run(self):
        super().run()
        if not self.editable_mode:
            # -B: what lies in the folder goes into the wheel, bytecode included
            command = [sys.executable, "-B", "-m", "jaxgrad", "stubs"]
            settings = {"JAX_PLATFORMS": "cpu", "JAXGRAD_CACHE": "off"}
            subprocess.run(command, cwd=self.build_lib, env=os.environ | settings, check=True)


class DescribedForIndexes(egg_info):
    """Writes the metadata, with the README as the description."""

    def run(self):
        metadata = self.distribution.metadata
        metadata.long_description = without_relative_links(metadata.long_description)
        super().run()


def without_relative_links(text: str) -> str:
    """Markdown with the texts of links to files of the repository, and without its pictures: a
    package index has the description alone. Blocks of code stay as they are."""
    blocks = re.split(r"(^```.*?^```)", text, flags=re.DOTALL | re.MULTILINE)
    blocks[::2] = [_unlinked(block) for block in blocks[::2]]
    return "".join(blocks)


def _unlinked(text: str) -> str:
    target = r"\((?!https?://|#)[^)\s]+\)"
    text = re.sub(rf"^!\[[^\]]*\]{target}\n*", "", text, flags=re.MULTILINE)
    return re.sub(rf"(?<!!)\[([^\]]*)\]{target}", r"\1", text)
