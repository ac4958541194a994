"""The switch that most tests of the mesh use, built once."""

import pytest

from tests.hw.mesh.bench import ONE, Bench, Mesh, switch


@pytest.fixture(scope="session")
def one() -> Bench:
    """Bench of one switch of one track, with one unit output and two unit inputs."""
    return Bench(Mesh({0: switch(ONE)}))
