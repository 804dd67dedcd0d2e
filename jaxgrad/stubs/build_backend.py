"""The build backend of pyproject.toml: setuptools, and in wheels the type stubs.

Stubs are made by importing jaxgrad. So it takes more to build a wheel than to install a checkout
as editable, for which `jaxgrad stubs` writes them. pip imports this file without its package.
"""

import os
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
