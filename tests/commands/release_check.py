"""Install the wheel in a new environment of Python, and use it there as users do.

make release-check     (`PYTHONS="python3.11 python3.13"` names the Pythons to try)

For each Python: a training script, a compiled step, files of `save` and of `export`, `jaxgrad
doctor`, the help, and mypy on a program with the stubs of the wheel. Before these, the README is
read as a package index shows it: from the metadata of the wheel, where links to files of the
repository lead nowhere.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PROGRAM = Path(__file__).parent / "release" / "user_program.py"
TYPED = Path(__file__).parent / "release" / "typed_program.py"


def description(wheel: Path) -> str:
    """The long description in the metadata of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return archive.read(name).decode().partition("\n\n")[2]


def relative_links(text: str) -> list[str]:
    """The targets of links and pictures of Markdown that are no addresses."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    targets = re.findall(r"\]\(([^)\s]+)", prose)
    return [target for target in targets if not re.match(r"https?://|#", target)]


def run(*command, cwd):
    print("$", *(Path(part).name if "/" in str(part) else part for part in command), flush=True)
    subprocess.run([*map(str, command)], cwd=cwd, check=True)


def check(python: str, wheel: Path) -> None:
    """Use the wheel in a new environment of `python`; raise for the first thing that fails."""
    with tempfile.TemporaryDirectory() as folder:
        run(python, "-m", "venv", "venv", cwd=folder)
        inner = Path(folder) / "venv" / "bin" / "python"
        run(inner, "-m", "pip", "install", "--quiet", wheel.resolve(), "mypy", cwd=folder)
        use(inner, folder)


def use(python: Path, folder: str) -> None:
    """Run what users run, by an environment that has the wheel and mypy."""
    for program in (PROGRAM, TYPED):
        (Path(folder) / program.name).write_text(program.read_text())
    run(python, "--version", cwd=folder)
    run(python, PROGRAM.name, cwd=folder)
    run(python, "-m", "jaxgrad", "--help", cwd=folder)
    run(python.with_name("jaxgrad"), "doctor", cwd=folder)
    run(python, "-m", "mypy", "--strict", TYPED.name, cwd=folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("pythons", nargs="*", default=[sys.executable])
    arguments = parser.parse_args()
    if broken := relative_links(description(arguments.wheel)):
        sys.exit(f"the description has links that lead nowhere on an index: {broken}")
    for python in arguments.pythons:
        check(python, arguments.wheel)


if __name__ == "__main__":
    main()
