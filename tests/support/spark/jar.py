"""The jar of this package: compiling its Java, and writing it so that the same source gives the same bytes.

`python -m tests.support.spark.jar` (`make jar`) writes it into the package; a test compares it with its source.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

from construct_messages.spark.jar import JAR

SOURCE: Final = JAR.parent
_RELEASE: Final = "17"
_LONG_AGO: Final = (1980, 1, 1, 0, 0, 0)  # the first that a zip file can hold
_MANIFEST: Final = "META-INF/MANIFEST.MF"
_DIGEST: Final = "META-INF/source.sha256"


def sources() -> list[Path]:
    """The files of Java."""
    return sorted(SOURCE.rglob("*.java"))


def digest() -> str:
    """The SHA-256 of the source, which the jar tells."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources())).hexdigest()


def compiler() -> str | None:
    """The feature release of the `javac` on PATH; None if there is none."""
    if (javac := shutil.which("javac")) is None:
        return None
    done = subprocess.run([javac, "-version"], capture_output=True, text=True, check=True)
    match = re.search(r"javac (\d+)", done.stdout + done.stderr)
    return match[1] if match else None


def compiled(folder: Path) -> dict[str, bytes]:
    """Compiles the source beside pyspark's jars; the classes by their names in a jar."""
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars" / "*"
    options = [
        "--release",
        _RELEASE,
        "-proc:none",
        "-g:none",
        "-Werror",
        "-classpath",
        str(jars),
        "-d",
        str(folder),
    ]
    done = subprocess.run(["javac", *options, *map(str, sources())], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*.class"))
    }


def told(jar: Path = JAR) -> tuple[str, str]:
    """The feature release of the compiler and the digest of the source that a jar tells."""
    with zipfile.ZipFile(jar) as archive:
        manifest = archive.read(_MANIFEST).decode()
        return manifest.partition("Build-Jdk-Spec: ")[2].strip(), archive.read(_DIGEST).decode()


def classes(jar: Path = JAR) -> dict[str, bytes]:
    """The classes of a jar by their names."""
    with zipfile.ZipFile(jar) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name.endswith(".class")}


def write(jar: Path = JAR) -> None:
    """Writes the jar; uncompressed, as versions of zlib differ."""
    with tempfile.TemporaryDirectory() as folder:
        found = compiled(Path(folder))
    manifest = f"Manifest-Version: 1.0\r\nBuild-Jdk-Spec: {compiler()}\r\n\r\n"
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_STORED) as archive:
        for name, content in {
            _MANIFEST: manifest.encode(),
            _DIGEST: digest().encode(),
            **found,
        }.items():
            archive.writestr(zipfile.ZipInfo(name, _LONG_AGO), content)


if __name__ == "__main__":
    write()
    sys.stdout.write(f"{JAR}: {', '.join(classes())}\n")
